"""Why a group sees no records of a partition: from the topic to the transaction that is open.

Each question is a call of its own, so the answer rests on the data that the caller may see. The
first cause that holds is the answer: a partition without a holder explains more than the records
that lie before it.
"""

from dataclasses import replace

from aiosemel._admin.group_queries import GroupQueries
from aiosemel._admin.producer_descriptions import describe_producers
from aiosemel._admin.record_admin import RecordAdmin
from aiosemel._admin.topic_admin import TopicAdmin
from aiosemel._admin.transaction_admin import TransactionAdmin
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import (
    AuthorizationError,
    GroupIdNotFoundError,
    InvalidRequestError,
    RetriableError,
    TransactionalIdNotFoundError,
)
from aiosemel.types.descriptions import (
    GroupDescription,
    MemberDescription,
    PartitionDescription,
)
from aiosemel.types.isolation import IsolationLevel
from aiosemel.types.offsets import OffsetSpec, TopicPartition
from aiosemel.types.reader_standing import HoldingTransaction, ReaderCause, ReaderStanding
from aiosemel.types.transaction_outcomes import KnownOutcome

_AWAY = -2
"""The member epoch of a static member that has left for a while."""
POLL_LATE_MS = 15_000
"""More than any poll of a program that takes its records as they come."""


class ReaderCheck:
    """Looks for the cause, for one group and one partition."""

    def __init__(self, cluster: Cluster, group_id: str, partition: TopicPartition) -> None:
        self._cluster = cluster
        self._partition = partition
        self._topics = TopicAdmin(cluster)
        self._records = RecordAdmin(cluster)
        self._groups = GroupQueries(cluster)
        self._transactions = TransactionAdmin(cluster)
        self._is_late = False
        """Whether the member that holds the partition does not poll."""
        self._standing = ReaderStanding(
            group_id=group_id, partition=partition, cause=ReaderCause.ALL_READ
        )

    async def run(self) -> ReaderStanding:
        """Return the first cause that holds, with all that was learned on the way to it."""
        cause = await self._cause()
        return replace(self._standing, cause=cause)

    async def _cause(self) -> ReaderCause:
        found = await self._topics.describe_topics([self._partition.topic])
        topic = found.topics.get(self._partition.topic)
        if topic is None:
            return ReaderCause.NO_TOPIC
        place = next(
            (each for each in topic.partitions if each.partition == self._partition.partition), None
        )
        if place is None:
            return ReaderCause.NO_PARTITION
        try:
            described = await self._groups.describe_group(self._standing.group_id)
        except GroupIdNotFoundError:
            return ReaderCause.NO_GROUP
        try:
            await self._look_at_log()
        except RetriableError as error:
            self._standing = replace(self._standing, problem=_problem(place, error.message))
            return ReaderCause.PARTITION_AWAY
        return self._cause_in_group(described) or await self._cause_in_log(described)

    async def _look_at_log(self) -> None:
        partition, committed_only = self._partition, IsolationLevel.READ_COMMITTED
        offsets = await self._groups.list_consumer_group_offsets(
            self._standing.group_id, [partition]
        )
        at = offsets[partition]
        start = (await self._records.list_offsets({partition: OffsetSpec.EARLIEST}))[partition]
        end = (await self._records.list_offsets({partition: OffsetSpec.LATEST}))[partition]
        stable = (
            await self._records.list_offsets(
                {partition: OffsetSpec.LATEST}, isolation_level=committed_only
            )
        )[partition]
        assert start is not None, "a log has a start"
        assert end is not None, "a log has an end"
        assert stable is not None, "a log has a last stable offset"
        begin = start.offset if at is None else max(start.offset, at.offset)
        lag = (await self._records.count_records({partition: begin}))[partition]
        self._standing = replace(
            self._standing,
            committed_offset=None if at is None else at.offset,
            log_start_offset=start.offset,
            last_stable_offset=stable.offset,
            high_watermark=end.offset,
            lag=lag,
            records_held=max(0, end.offset - stable.offset),
        )

    # -- the group -----------------------------------------------------------------------------

    def _cause_in_group(self, described: GroupDescription) -> ReaderCause | None:
        """Return why no member reads the partition; None: one does."""
        if not described.members:
            return ReaderCause.NO_MEMBER
        topic = self._partition.topic
        holders = [each for each in described.members if self._partition in each.assignment]
        targets = [each for each in described.members if self._partition in each.target]
        for member in (*holders, *targets)[:1]:
            self._standing = replace(
                self._standing, member_id=member.member_id, poll_age_ms=member.poll_age_ms
            )
            self._is_late = is_late(member)
            if member.member_epoch == _AWAY:  # It holds nothing, and its partitions wait for it.
                return ReaderCause.MEMBER_AWAY
        if holders:
            return None
        wants = any(topic in each.subscribed_topics for each in described.members)
        return ReaderCause.NOT_HELD if wants or targets else ReaderCause.NOT_SUBSCRIBED

    # -- the log -------------------------------------------------------------------------------

    async def _cause_in_log(self, described: GroupDescription) -> ReaderCause:
        standing = self._standing
        at, start, end = (
            standing.committed_offset,
            standing.log_start_offset or 0,
            standing.high_watermark or 0,
        )
        if at is not None and at > end:
            return ReaderCause.PAST_END
        if at is not None and at < start:
            return ReaderCause.BELOW_LOG_START
        pending = [each for each in described.pending if self._partition in each.offsets]
        if pending:
            oldest = min(pending, key=lambda each: each.start_time_ms)
            pending_in = await self._holder(
                oldest.producer_id, oldest.producer_epoch, oldest.start_time_ms, None
            )
            self._standing = replace(standing, holder=pending_in)
            return ReaderCause.OFFSETS_PENDING
        if standing.lag:
            return ReaderCause.NOT_POLLED if self._is_late else ReaderCause.UNREAD
        if standing.records_held and await self._note_holder():
            return ReaderCause.OPEN_TRANSACTION
        begin = start if at is None else at
        stable = self._standing.last_stable_offset or 0
        return ReaderCause.ABORTED_ONLY if begin < stable else ReaderCause.ALL_READ

    async def _note_holder(self) -> bool:
        """Note the transaction that holds the last stable offset; False: it has ended since."""
        deadline = Deadline.after_ms(self._cluster.options.default_api_timeout_ms)
        found = await describe_producers(self._cluster, self._partition, 1, deadline)
        for producer in found.producers:
            if producer.open_transactions:
                first = producer.open_transactions[0]
                holder = await self._holder(
                    producer.producer_id, first.producer_epoch, first.start_time_ms, first.age_ms
                )
                self._standing = replace(self._standing, holder=holder)
                return True
        return False

    async def _holder(
        self, producer_id: int, producer_epoch: int, start_time_ms: int, age_ms: int | None
    ) -> HoldingTransaction:
        unknown = HoldingTransaction(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            start_time_ms=start_time_ms,
            age_ms=age_ms,
            transactional_id="",
            outcome=None,
            time_left_ms=None,
            client="",
        )
        try:
            known = await self._transactions.get_transaction_outcome(
                None, producer_epoch, producer_id=producer_id
            )
        except (RetriableError, InvalidRequestError, AuthorizationError):
            return unknown  # Its coordinator is away, or keeps it from this caller.
        name = known.transactional_id
        return replace(
            unknown,
            transactional_id=name,
            outcome=None if known.outcome is KnownOutcome.TOO_OLD_TO_KNOW else known.outcome,
            time_left_ms=known.time_left_ms,
            client=await self._client_of(name) if name else "",
        )

    async def _client_of(self, transactional_id: str) -> str:
        try:
            described = await self._transactions.describe_transactions(transactional_id)
        except (RetriableError, TransactionalIdNotFoundError, AuthorizationError):
            return ""
        return "" if described.client is None else str(described.client)


def is_late(member: MemberDescription) -> bool:
    """Whether a member had not polled for long at its last heartbeat: it is busy, or stuck."""
    return (member.poll_age_ms or 0) - (member.heartbeat_age_ms or 0) >= POLL_LATE_MS


def _problem(place: PartitionDescription, message: str) -> str:
    moves = "" if place.moving_to is None else f", and moves to broker {place.moving_to}"
    return f"broker {place.leader_id} leads it{moves}: {message}"
