"""What the admin client does for operators: open transactions, aborts, fences, producers."""

from collections.abc import Iterable
from functools import partial

from aiosemel._cluster import Cluster, Route
from aiosemel._metadata import BROKER, COORDINATOR, GROUP_COORDINATOR
from aiosemel._retry import Deadline
from aiosemel._transactions import get_outcome, topic_names
from aiosemel.errors import InvalidRequestError, RetriableError, SemelError
from aiosemel.offsets import TopicPartition
from aiosemel.operators import (
    AbortedByOperator,
    FencedByOperator,
    OpenEpoch,
    OpenTransaction,
    OpenTransactions,
    PartitionProducers,
    ProducerDescription,
)
from aiosemel.outcomes import TransactionOutcomeDescription
from semel.broker.v1 import producers_pb2 as producers
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel_common import ids
from semel_common.wire import methods, status

_ROLE_NAMES = {BROKER: "broker", GROUP_COORDINATOR: "group-coordinator"}


class OperatorCalls:
    """Asks and acts with one deadline for everything."""

    def __init__(self, cluster_: Cluster, deadline: Deadline) -> None:
        self._cluster = cluster_
        self._deadline = deadline

    # -- what is open ---------------------------------------------------------------------------

    async def open_transactions(self, *, longer_than_ms: int, limit: int) -> OpenTransactions:
        """See ``Operators.list_open_transactions``."""
        found: list[participants.OpenTransaction] = []
        unreachable: list[str] = []
        truncated = False
        request = participants.ListOpenTransactionsRequest(
            open_longer_than_ms=longer_than_ms, limit=limit
        )
        for name, route in await self._participants():
            try:
                response = await self._call_once(route, request)
            except RetriableError as error:
                unreachable.append(f"{name}: {error.message}")
                continue
            found += response.transactions
            truncated = truncated or response.truncated
        found.sort(key=lambda each: (each.start_time_ms, each.producer_id, each.producer_epoch))
        return OpenTransactions(
            transactions=tuple(await self._described(found[: limit or None])),
            truncated=truncated or bool(limit and len(found) > limit),
            unreachable=tuple(unreachable),
        )

    async def _participants(self) -> list[tuple[str, Route]]:
        """Return whom to ask. Who is decommissioned and empty may be gone for good."""
        await self._cluster.refresh(self._deadline)
        described = await self._cluster.call(
            self._cluster.any_coordinator(),
            methods.DESCRIBE_CLUSTER,
            cluster.DescribeClusterRequest(),
            deadline=self._deadline,
        )
        instances = sorted(
            (each.instance.role, each.instance.instance_id)
            for each in described.instances
            if each.leader_partitions or not each.instance.decommissioned
        )
        return [
            (f"{_ROLE_NAMES[role]}-{number}", partial(self._cluster.address_of, role, number))
            for role, number in instances
            if role != COORDINATOR
        ]

    async def _call_once(
        self, route: Route, request: participants.ListOpenTransactionsRequest
    ) -> participants.ListOpenTransactionsResponse:
        """Ask once: an instance that is away is an answer, too."""
        method = methods.LIST_OPEN_TRANSACTIONS
        return await self._cluster.attempt(route, method, request, deadline=self._deadline)

    async def _described(
        self, found: Iterable[participants.OpenTransaction]
    ) -> list[OpenTransaction]:
        listed = list(found)
        names = await self._topic_names(listed)
        known: dict[tuple[int, int], TransactionOutcomeDescription | SemelError] = {}
        for each in listed:
            key = (each.producer_id, each.producer_epoch)
            if key not in known:
                known[key] = await self._outcome(*key)
        return [_open(each, names, known[each.producer_id, each.producer_epoch]) for each in listed]

    async def _outcome(
        self, producer_id: int, producer_epoch: int
    ) -> TransactionOutcomeDescription | SemelError:
        try:
            return await get_outcome(
                self._cluster,
                transactional_id=None,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                deadline=self._deadline,
            )
        except (RetriableError, InvalidRequestError) as error:
            return error

    async def _topic_names(self, found: Iterable[participants.OpenTransaction]) -> dict[str, str]:
        topic_ids = {each.participant.topic_partition.topic_id for each in found} - {""}
        return await topic_names(self._cluster, topic_ids, self._deadline)

    # -- acting ---------------------------------------------------------------------------------

    async def abort(self, request: outcomes.AbortTransactionRequest) -> AbortedByOperator:
        """See ``Operators.abort_transaction``."""
        response = await self._cluster.call(
            self._cluster.coordinator_of(request.transactional_id),
            methods.ABORT_TRANSACTION,
            request,
            deadline=self._deadline,
        )
        return AbortedByOperator(
            participants=response.participants,
            already_aborted=response.already_aborted,
            dry_run=request.dry_run,
        )

    async def fence(self, request: outcomes.FenceProducerRequest) -> FencedByOperator:
        """See ``Operators.fence_producer``."""
        response = await self._cluster.call(
            self._cluster.coordinator_of(request.transactional_id),
            methods.FENCE_PRODUCER,
            request,
            deadline=self._deadline,
        )
        return FencedByOperator(
            producer_id=response.producer_id,
            fenced_epoch=response.fenced_epoch,
            participants=response.participants,
            dry_run=request.dry_run,
        )

    # -- producers ------------------------------------------------------------------------------

    async def producers_of(self, partition: TopicPartition, limit: int) -> PartitionProducers:
        """See ``Operators.describe_producers``."""
        topic = await self._cluster.topic(partition.topic, self._deadline)
        named = participants.TopicPartition(topic_id=topic.topic_id, partition=partition.partition)
        request = producers.DescribeProducersRequest(partitions=[named], limit=limit)
        route = self._cluster.leader_of(ids.TopicPartition(topic.topic_id, partition.partition))
        described: producers.PartitionProducers | None = None

        async def attempt() -> None:
            nonlocal described
            response = await self._cluster.call(
                route, methods.DESCRIBE_PRODUCERS, request, deadline=self._deadline
            )
            described = response.partitions[0]
            if described.HasField("error"):
                raise status.from_value(described.error)

        await self._cluster.insist(attempt, deadline=self._deadline)
        assert described is not None
        return PartitionProducers(
            partition=partition,
            high_watermark=described.high_watermark,
            last_stable_offset=described.last_stable_offset,
            producers=tuple(_producer(each) for each in described.producers),
            producer_count=described.producer_count,
        )


def _open(
    found: participants.OpenTransaction,
    names: dict[str, str],
    known: TransactionOutcomeDescription | SemelError,
) -> OpenTransaction:
    is_group = found.participant.HasField("group_id")
    place = found.participant.topic_partition
    name = names.get(place.topic_id, place.topic_id)
    return OpenTransaction(
        partition=None if is_group else TopicPartition(name, place.partition),
        group_id=found.participant.group_id if is_group else None,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        start_time_ms=found.start_time_ms,
        age_ms=found.age_ms,
        first_offset=None if is_group else found.first_offset,
        known=None if isinstance(known, SemelError) else known,
        problem=known.message if isinstance(known, SemelError) else "",
    )


def _producer(answer: producers.ProducerDescription) -> ProducerDescription:
    return ProducerDescription(
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch if answer.producer_epoch >= 0 else None,
        last_sequence=answer.last_sequence if answer.last_sequence >= 0 else None,
        last_timestamp_ms=answer.last_timestamp_ms,
        fence=answer.fence,
        open_transactions=tuple(
            OpenEpoch(
                producer_epoch=each.producer_epoch,
                first_offset=each.first_offset,
                start_time_ms=each.start_time_ms,
                age_ms=each.age_ms,
            )
            for each in answer.open_transactions
        ),
    )
