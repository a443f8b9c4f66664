"""The admin client: creates, deletes, lists and describes.

Every call ends within ``default_api_timeout_ms``, at the latest by RequestTimedOutError. What it
asks for may have happened then, and when it was cancelled.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from aiosemel._admin import topic_admin
from aiosemel._admin.access_admin import AccessAdmin
from aiosemel._admin.group_admin import GroupAdmin
from aiosemel._admin.move_admin import MoveAdmin
from aiosemel._admin.operator_admin import Operators
from aiosemel._cluster import from_wire
from aiosemel._cluster.description import describe_cluster
from aiosemel._cluster.log_offsets import AtTime, LogOffsets, RecordDeletion
from aiosemel._cluster.metadata import GROUP_COORDINATOR, topics_in
from aiosemel._cluster.metadata_cache import TOPICS_IN_PAGE, TOPICS_IN_REQUEST
from aiosemel._cluster.pages import pages
from aiosemel._cluster.record_counts import RecordCounts
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster, Route
from aiosemel._cluster.transaction_calls import (
    describe_transactions,
    get_outcome,
    list_transactions,
)
from aiosemel._consumer.group.committed_offsets import GroupOffsets
from aiosemel._consumer.waiting_for_records import Waiting
from aiosemel._producer.transactions.two_phase_commit import complete_prepared
from aiosemel._shared.value_checks import check_group_id
from aiosemel.errors import (
    InvalidPartitionsError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
)
from aiosemel.types.descriptions import (
    ClusterDescription,
    ConfigDescription,
    GroupDescription,
    GroupListing,
    GroupState,
    TopicDescription,
    TopicsDescription,
    TransactionalIdDescription,
    TransactionListing,
    TransactionState,
)
from aiosemel.types.isolation import IsolationLevel
from aiosemel.types.offsets import (
    ConsumerGroupMetadata,
    DeletedRecords,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    PartitionKey,
    TopicPartition,
)
from aiosemel.types.prepared_transaction import PreparedTransactionId
from aiosemel.types.transaction_outcomes import TransactionOutcomeDescription
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire import methods, status

_GROUP_STATES = {state: number for number, state in from_wire.GROUP_STATES.items()}
_TRANSACTION_STATES = {state: number for number, state in from_wire.TRANSACTION_STATES.items()}

_State = TypeVar("_State", GroupState, TransactionState)
_Number = TypeVar("_Number")

ConfigValue: TypeAlias = str | int | float
"""What an option may be set to."""


class Admin:
    """Looks after a cluster. Made by ``SemelClient.admin``; needs no closing."""

    def __init__(self, cluster_: Cluster) -> None:
        self._cluster = cluster_

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        configs: Mapping[str, ConfigValue] | None = None,
        exist_ok: bool = False,
    ) -> TopicDescription:
        """Create a topic and spread it over the brokers; ``partitions`` None: as many as usual.

        ``configs`` are options by Kafka's names, such as ``{"retention.ms": 3_600_000}``; see
        ``describe_configs``. Raises TopicAlreadyExistsError unless ``exist_ok``, InvalidTopicError,
        InvalidPartitionsError, InvalidConfigError. If an answer was lost on the way, the topic that
        exists already may be the one that this call has created.
        """
        if partitions == 0:
            raise InvalidPartitionsError(f"topic {name!r} cannot have 0 partitions")
        new = cluster.NewTopic(
            name=name, partitions=partitions or 0, configs=_config_texts(configs or {})
        )
        topic = await topic_admin.create(self._cluster, new, self._deadline(), exist_ok=exist_ok)
        return from_wire.topic(topic)

    async def delete_topic(self, name: str, *, missing_ok: bool = False) -> None:
        """Delete a topic with all that is in it.

        Raises UnknownTopicOrPartitionError unless ``missing_ok``.
        """
        try:
            await topic_admin.delete(self._cluster, name, self._deadline())
        except UnknownTopicOrPartitionError:
            if not missing_ok:
                raise

    async def create_partitions(
        self, topic: str, partitions: int, *, validate_only: bool = False
    ) -> int:
        """Give a topic more partitions, ``partitions`` all together; returns their number.

        From then on, a record with a key may go to another partition than earlier records with that
        key. Readers that rely on the order of a key must first read the log to its end. This client
        knows the new partitions when the call returns; other producers notice within
        ``metadata_max_age_ms``, groups at their members' next heartbeats. Raises
        InvalidPartitionsError unless the count is above the present one, and
        UnknownTopicOrPartitionError. If the answer to an earlier attempt was lost, the present
        count may already be the result of this call.
        """
        more = cluster.MorePartitions(name=topic, partitions=partitions)
        return await topic_admin.add_partitions(
            self._cluster, more, self._deadline(), validate_only=validate_only
        )

    async def describe_configs(self, topic: str) -> dict[str, ConfigDescription]:
        """Return all options of a topic, by name; raises UnknownTopicOrPartitionError."""
        return await topic_admin.describe_configs(self._cluster, topic, self._deadline())

    async def incremental_alter_configs(
        self,
        topic: str,
        *,
        set_configs: Mapping[str, ConfigValue] | None = None,
        reset: Iterable[str] = (),
        validate_only: bool = False,
    ) -> dict[str, str]:
        """Set some options of a topic, give others their defaults again, and leave the rest.

        Returns the options that are set then; ``validate_only`` changes nothing. May be repeated.
        Raises UnknownTopicOrPartitionError, and InvalidConfigError naming option and value.
        """
        change = cluster.TopicConfigChange(
            name=topic, set=_config_texts(set_configs or {}), reset=list(reset)
        )
        return await topic_admin.alter_configs(
            self._cluster, change, self._deadline(), validate_only=validate_only
        )

    async def list_topics(self) -> tuple[TopicDescription, ...]:
        """Return all topics, by name."""

        def ask(token: str) -> Awaitable[cluster.MetadataResponse]:
            return self._metadata(
                cluster.MetadataRequest(all_topics=True, limit=TOPICS_IN_PAGE, page_token=token)
            )

        topics = [topic async for page in pages(ask) for topic in topics_in(page)]
        return tuple(map(from_wire.topic, sorted(topics, key=lambda topic: topic.name)))

    async def describe_topic(self, name: str) -> TopicDescription:
        """Return one topic; raises UnknownTopicOrPartitionError, InvalidTopicError."""
        response = await self._topics([name])
        for topic in response.topics:
            if topic.HasField("error"):
                raise status.from_value(topic.error)
        return from_wire.topic(topics_in(response)[0])

    async def describe_topics(self, names: Iterable[str]) -> TopicsDescription:
        """Return those of some topics that are there, as this client knows them from now on."""
        wanted, cluster_id, topics = list(names), "", dict[str, TopicDescription]()
        for start in range(0, max(1, len(wanted)), TOPICS_IN_REQUEST):
            some = wanted[start : start + TOPICS_IN_REQUEST]
            response = await self._topics(some)
            self._cluster.cache.learn(response)
            cluster_id = response.cluster_id
            topics |= {topic.name: from_wire.topic(topic) for topic in topics_in(response)}
        return TopicsDescription(cluster_id=cluster_id, topics=topics)

    async def _topics(self, names: Sequence[str]) -> cluster.MetadataResponse:
        known = await self._metadata(cluster.MetadataRequest(topics=names))
        return await topic_admin.with_controllers_word(self._cluster, known, self._deadline())

    async def _metadata(self, request: cluster.MetadataRequest) -> cluster.MetadataResponse:
        """Ask until an instance answers that does not lag behind what this client has seen."""
        deadline, pauses = self._deadline(), self._cluster.backoff()
        while True:
            response = await self._cluster.call(
                self._cluster.any_coordinator(), methods.METADATA, request, deadline=deadline
            )
            if not self._cluster.cache.is_ahead_of(response):
                return response
            await asyncio.sleep(min(next(pauses), deadline.remaining_ms()) / 1000)

    async def list_offsets(
        self,
        partitions: Mapping[PartitionKey, OffsetSpec | int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return where logs begin or end, or the first record at a time or later, by partition.

        An int is a time in milliseconds since 1970-01-01 UTC. The answer is None if no record is
        that late, or if the partition has no newest record. The latest offset is the end of the
        durable log, the high watermark; with READ_COMMITTED it is the last stable offset, and a
        time finds committed records only. Raises UnknownTopicOrPartitionError.
        """
        wanted = {
            TopicPartition.named(each): at if isinstance(at, OffsetSpec) else AtTime(at)
            for each, at in partitions.items()
        }
        offsets = LogOffsets(self._cluster, isolation_level)
        return await offsets.find(wanted, self._deadline())

    async def wait_for_records(
        self,
        ends: Mapping[PartitionKey, int],
        *,
        max_wait_ms: int,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> None:
        """Return as soon as a reader at one of these offsets may find a record, or after a while.

        It may also return sooner, because something has failed: list the offsets to see.
        """
        wanted = {TopicPartition.named(each): offset for each, offset in ends.items()}
        waiting = Waiting(self._cluster, isolation_level)
        await waiting.wait(wanted, max_wait_ms)

    async def count_records(
        self,
        starts: Mapping[PartitionKey, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, int]:
        """Return how many records a reader at these offsets has yet to see, which is its lag.

        Markers are not counted, nor, with READ_COMMITTED, aborted records. Past the end of a log
        there is nothing to see. Raises UnknownTopicOrPartitionError.
        """
        wanted = {TopicPartition.named(each): offset for each, offset in starts.items()}
        return await RecordCounts(self._cluster, isolation_level).count(wanted, self._deadline())

    async def delete_records(
        self, before: Mapping[PartitionKey, int | None], *, validate_only: bool = False
    ) -> dict[TopicPartition, DeletedRecords]:
        """Delete the oldest records of partitions: those below an offset; None: all.

        They are gone at once, their space is given back little by little. What an open transaction
        has written, and what comes after it, stays. ``validate_only`` deletes nothing. May be
        repeated. Raises OffsetOutOfRangeError past the last stable offset, PolicyViolationError for
        topics that are only compacted, UnknownTopicOrPartitionError.
        """
        deletion = RecordDeletion(self._cluster, validate_only=validate_only)
        wanted = {TopicPartition.named(each): offset for each, offset in before.items()}
        return await deletion.delete(wanted, self._deadline())

    async def describe_cluster(self) -> ClusterDescription:
        """Return the cluster with all its instances.

        The controller, coordinator 0, knows most of them. If it does not answer, another
        coordinator does.
        """
        return await describe_cluster(self._cluster, self._deadline())

    @property
    def operators(self) -> Operators:
        """What operators look for and do: open transactions, aborts, fences, producers."""
        return Operators(self._cluster)

    @property
    def access(self) -> AccessAdmin:
        """Permissions and limits: access rules, and quotas."""
        return AccessAdmin(self._cluster)

    @property
    def moves(self) -> MoveAdmin:
        """Which broker leads which partition: moves, rebalancing, and brokers to be emptied."""
        return MoveAdmin(self._cluster)

    @property
    def groups(self) -> GroupAdmin:
        """What is done to groups: offsets altered, reset and deleted, and whole groups deleted."""
        return GroupAdmin(self._cluster)

    async def list_groups(self, *, states: Iterable[GroupState] = ()) -> tuple[GroupListing, ...]:
        """Return the groups of all group coordinators, by id; ``states`` empty: in any state."""
        wanted = _numbers(states, _GROUP_STATES)
        found: list[GroupListing] = []
        deadline = self._deadline()

        def ask(route: Route, token: str) -> Awaitable[group.ListGroupsResponse]:
            request = group.ListGroupsRequest(states=wanted, page_token=token)
            return self._cluster.call(route, methods.LIST_GROUPS, request, deadline=deadline)

        for route in await self._cluster.everyone(GROUP_COORDINATOR, deadline):
            async for page in pages(partial(ask, route)):
                found.extend(map(from_wire.group_listing, page.groups))
        return tuple(sorted(found, key=lambda listing: listing.group_id))

    async def describe_group(self, group_id: str) -> GroupDescription:
        """Return one group; raises GroupIdNotFoundError."""
        response = await self._cluster.call(
            self._cluster.group_coordinator_of(group_id),
            methods.DESCRIBE_GROUPS,
            group.DescribeGroupsRequest(group_ids=[group_id]),
            deadline=self._deadline(),
        )
        described = response.groups[0]
        if described.HasField("error"):
            raise status.from_value(described.error)
        return from_wire.whole_group(described)

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what a group has committed; of partitions by name, None where there is nothing.

        Without ``partitions``: wherever it has committed anything, which is nowhere for a group
        that is not there. ``require_stable`` waits for open transactions that may still change an
        offset, and raises UnstableOffsetCommitError when it took too long. Raises
        InvalidGroupIdError, UnknownTopicOrPartitionError.
        """
        check_group_id(group_id)
        nobody = ConsumerGroupMetadata(group_id=group_id)
        offsets = GroupOffsets(self._cluster, lambda: nobody, require_stable=require_stable)
        named = None if partitions is None else [(TopicPartition.named(p), "") for p in partitions]
        return await offsets.settled(named, self._deadline())

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than_ms: int | None = None,
        transactional_id_pattern: str = "",
    ) -> tuple[TransactionListing, ...]:
        """Return the transactional ids of all coordinators, by id, that pass every filter.

        The pattern is a regular expression in RE2's syntax that the whole id must match. Raises
        InvalidRequestError for one that RE2 does not take.
        """
        request = transactions.ListTransactionsRequest(
            states=_numbers(states, _TRANSACTION_STATES),
            producer_ids=producer_ids,
            running_longer_than_ms=running_longer_than_ms,
            transactional_id_pattern=transactional_id_pattern,
        )
        return await list_transactions(self._cluster, request, self._deadline())

    async def describe_transactions(self, transactional_id: str) -> TransactionalIdDescription:
        """Return one transactional id with its transactions.

        Raises TransactionalIdNotFoundError.
        """
        return await describe_transactions(self._cluster, transactional_id, self._deadline())

    async def get_transaction_outcome(
        self,
        transactional_id: str | None,
        producer_epoch: int,
        *,
        producer_id: int | None = None,
    ) -> TransactionOutcomeDescription:
        """Return how a transaction ended; the last 256 of a transactional id are known.

        ``producer_id`` None stands for the present producer of the transactional id.
        ``transactional_id`` None: the producer id is enough. Raises TransactionalIdNotFoundError,
        InvalidProducerIdMappingError, and InvalidRequestError for an epoch that no producer had.
        """
        return await get_outcome(
            self._cluster,
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            deadline=self._deadline(),
        )

    async def list_prepared_transactions(
        self, *, transactional_id_pattern: str = ""
    ) -> tuple[PreparedTransactionId, ...]:
        """Return all prepared transactions, by transactional id, of each the oldest first.

        As ``list_transactions`` with ``TransactionState.PREPARED``, which also says since when.
        """
        listed = await self.list_transactions(
            states=[TransactionState.PREPARED], transactional_id_pattern=transactional_id_pattern
        )
        return tuple(
            PreparedTransactionId(
                transactional_id=entry.transactional_id,
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                cluster_id=self._cluster.identity.cluster_id,
            )
            for entry in listed
        )

    async def complete_prepared(
        self, prepared: PreparedTransactionId, *, commit: bool, wait_until_visible: bool = False
    ) -> None:
        """Commit or abort a prepared transaction, from outside of its producer.

        For a process that knows what the outside system has decided, and for operators. Nothing
        fences the caller: it must know, not guess. May be called again.

        Raises InvalidTxnStateError if it is not prepared, or has ended otherwise;
        ``details["outcome"]`` says how. Raises InvalidProducerIdMappingError of an unknown id, and
        InconsistentClusterIdError of one that names another cluster.
        """
        await complete_prepared(
            self._cluster,
            prepared,
            self._deadline(),
            commit=commit,
            wait_until_visible=wait_until_visible,
        )

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(self._cluster.options.default_api_timeout_ms)


def _config_texts(configs: Mapping[str, ConfigValue]) -> dict[str, str]:
    return {name: str(value) for name, value in configs.items()}


def _numbers(states: Iterable[_State], numbers: Mapping[_State, _Number]) -> list[_Number]:
    """Return states as they are sent. Raises InvalidRequestError for one that nothing is in."""
    asked = list(states)
    for state in asked:
        if state not in numbers:
            raise InvalidRequestError(f"state {state!s} is none to ask for", field="states")
    return [numbers[state] for state in asked]
