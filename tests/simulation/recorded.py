"""Producers and consumers of the SDK that record their calls and the results.

They are the real ones, and go where the real ones go, into ``transform`` too. A send counts as
answered when its transaction ends, because its caller looks at the result only then.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from semel_checker.history import Recorder
from semel_checker.names import Isolation, Outcome, Partition, Writer
from semel_checker.observations import Assigned, Positioned
from semel_checker.operations import (
    CommitOffsets,
    EndTransaction,
    GroupOffset,
    Initialized,
    InitProducer,
    OffsetCommit,
    PartitionRead,
    Poll,
    Polled,
    PrepareTransaction,
    Send,
    Sent,
)

from aiosemel import (
    Consumer,
    ConsumerGroupMetadata,
    ConsumerOptions,
    ConsumerRecord,
    Delivery,
    Headers,
    KnownOutcome,
    OffsetAndMetadata,
    PreparedTransactionId,
    ProducerOptions,
    RebalanceCallback,
    Resolution,
    SemelClient,
    SemelError,
    TopicPartition,
    TransactionAbortedError,
    TransactionalProducer,
    TransactionOutcomeUnknownError,
)
from aiosemel.types.offsets import PartitionKey
from simulation.named_records import NamedRecord, read_records

_ISOLATION = {
    "read_committed": Isolation.READ_COMMITTED,
    "read_uncommitted": Isolation.READ_UNCOMMITTED,
}
_RESOLVED = {
    KnownOutcome.COMMITTED: Outcome.OK,
    KnownOutcome.ABORTED: Outcome.FAILED,
    KnownOutcome.TOO_OLD_TO_KNOW: Outcome.UNKNOWN,
}


@dataclass(slots=True)
class Records:
    """The recorder of a run, and numbers that are used once in it."""

    recorder: Recorder
    numbers: "count[int]"

    @contextmanager
    def settled(
        self, process: str, op: int, is_definite: Callable[[], bool] = lambda: True
    ) -> Iterator[None]:
        """Record that an operation came back, well or not; most errors say nothing for sure."""
        try:
            yield
        except SemelError as error:
            outcome = Outcome.UNKNOWN
            if isinstance(error, TransactionAbortedError) and is_definite():
                outcome = Outcome.FAILED
            self.recorder.returned(process, op, outcome, error=type(error).__name__)
            raise


@dataclass(frozen=True, slots=True)
class RecordedClient:
    """Makes recorded producers and consumers of a client's process."""

    client: SemelClient
    records: Records
    process: str

    def transactional_producer(
        self, transactional_id: str, options: ProducerOptions | None = None
    ) -> "RecordedProducer":
        """Make a producer."""
        return RecordedProducer(self, transactional_id, options or ProducerOptions())

    def consumer(
        self, group_id: str | None = None, options: ConsumerOptions | None = None
    ) -> "RecordedConsumer":
        """Make a consumer."""
        return RecordedConsumer(self, group_id, options or ConsumerOptions())


class RecordedProducer(TransactionalProducer):
    """A transactional producer."""

    def __init__(
        self, owner: RecordedClient, transactional_id: str, options: ProducerOptions
    ) -> None:
        super().__init__(owner.client._context, options, transactional_id)
        owner.client._adopt(self)
        self._owner = owner
        self._process = owner.process
        self._records = owner.records
        self._recorder = owner.records.recorder
        self._sends: list[tuple[int, Delivery]] = []
        self.consumed: dict[TopicPartition, int] = {}
        """The first offset that the open transaction consumes of each partition."""

    @property
    def writer(self) -> Writer:
        """Name the current transaction."""
        manager = self._transactions.manager
        return Writer(manager.producer_id, manager.producer_epoch)

    async def init_transactions(
        self, *, wait_until_visible: bool = True, keep_prepared: bool = False
    ) -> tuple[PreparedTransactionId, ...]:
        """See ``TransactionalProducer``."""
        operation = InitProducer(
            transactional_id=self.transactional_id,
            keep_prepared=keep_prepared,
            wait_complete=wait_until_visible,
        )
        op = self._recorder.invoked(self._process, operation)
        with self._records.settled(self._process, op):
            kept = await super().init_transactions(
                wait_until_visible=wait_until_visible, keep_prepared=keep_prepared
            )
        prepared = tuple(Writer(each.producer_id, each.producer_epoch) for each in kept)
        answer = Initialized(writer=self.writer, prepared=prepared)
        self._recorder.returned(self._process, op, Outcome.OK, answer)
        return kept

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """See ``TransactionalProducer``."""
        assert partition is not None
        named = Partition(topic, partition)
        record = NamedRecord.of(value, key, headers).as_sent()
        operation = Send(writer=self.writer, partition=named, records=(record,))
        op = self._recorder.invoked(self._process, operation)
        try:
            delivery = await super().send(
                topic,
                value,
                key=key,
                partition=partition,
                headers=headers,
                timestamp_ms=timestamp_ms,
            )
        except SemelError as error:
            # It is in no batch. The transaction may have nothing else, and the next one its epoch.
            self._recorder.returned(self._process, op, Outcome.FAILED, error=type(error).__name__)
            raise
        self._sends.append((op, delivery))
        return delivery

    async def send_offsets(
        self,
        offsets: Mapping[PartitionKey, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata,
    ) -> None:
        """See ``TransactionalProducer``."""
        operation = CommitOffsets(
            group=group.group_id,
            offsets=tuple(
                OffsetCommit(
                    Partition(*each),
                    at if isinstance(at, int) else at.offset,
                    self.consumed.get(TopicPartition(*each)),
                )
                for each, at in offsets.items()
            ),
            writer=self.writer,
            member=group.member_id,
            member_epoch=group.member_epoch,
        )
        op = self._recorder.invoked(self._process, operation)
        with self._records.settled(self._process, op):
            await super().send_offsets(offsets, group)
        self._recorder.returned(self._process, op, Outcome.OK)

    async def commit(self, *, wait_until_visible: bool = False) -> None:
        """See ``TransactionalProducer``."""
        op = self._end_begins(commit=True)
        try:
            with self._records.settled(self._process, op, self._has_left):
                await super().commit(wait_until_visible=wait_until_visible)
        except TransactionAbortedError:
            if not self._has_left():
                self._settle_unsent()
            raise
        finally:
            self._settle_sends()
        self._recorder.returned(self._process, op, Outcome.OK)

    async def resolve(self, error: TransactionOutcomeUnknownError) -> Resolution:
        """Find out the outcome of a commit: it is as good as the answer that was lost."""
        writer = Writer(error.producer_id, error.producer_epoch)
        op = self._recorder.invoked(self._process, EndTransaction(writer=writer, commit=True))
        with self._records.settled(self._process, op):
            resolution = await error.resolve()
        self._recorder.returned(self._process, op, _RESOLVED[resolution.outcome])
        return resolution

    async def ask(self, writer: Writer) -> None:
        """Ask the coordinator how one of this producer's transactions ended."""
        known = await self._owner.client.admin().get_transaction_outcome(
            self.transactional_id, writer.producer_epoch, producer_id=writer.producer_id
        )
        if known.outcome in _RESOLVED:
            operation = EndTransaction(writer=writer, commit=True)
            op = self._recorder.invoked(self._process, operation)
            self._recorder.returned(self._process, op, _RESOLVED[known.outcome])

    async def prepare(self) -> PreparedTransactionId:
        """See ``TransactionalProducer``."""
        op = self._recorder.invoked(self._process, PrepareTransaction(writer=self.writer))
        try:
            with self._records.settled(self._process, op):
                prepared = await super().prepare()
        finally:
            self._settle_sends()
        self._recorder.returned(self._process, op, Outcome.OK)
        return prepared

    async def complete_prepared(
        self, prepared: PreparedTransactionId, *, commit: bool, wait_until_visible: bool = False
    ) -> None:
        """See ``TransactionalProducer``."""
        writer = Writer(prepared.producer_id, prepared.producer_epoch)
        operation = EndTransaction(writer=writer, commit=commit, successor=self.writer)
        op = self._recorder.invoked(self._process, operation)
        with self._records.settled(self._process, op):
            await super().complete_prepared(
                prepared, commit=commit, wait_until_visible=wait_until_visible
            )
        self._recorder.returned(self._process, op, Outcome.OK)

    async def abort(self) -> None:
        """See ``TransactionalProducer``."""
        if not self._has_left():
            self._settle_unsent()
            await super().abort()
            return
        self._settle_sends()
        op = self._end_begins(commit=False)
        with self._records.settled(self._process, op):
            await super().abort()
        self._recorder.returned(self._process, op, Outcome.OK)

    def _has_left(self) -> bool:
        """Whether anything of the transaction has. If not, the next one has its epoch."""
        manager = self._transactions.manager
        return bool(manager._participants.sent) or manager.end_sent

    def _settle_unsent(self) -> None:
        """Record that nothing of the transaction has left, so that none of it ever will."""
        for op, _ in self._sends:
            self._recorder.returned(self._process, op, Outcome.FAILED, error="never sent")
        self._sends.clear()

    def _end_begins(self, *, commit: bool) -> int:
        operation = EndTransaction(writer=self.writer, commit=commit)
        return self._recorder.invoked(self._process, operation)

    def _settle_sends(self) -> None:
        for op, delivery in self._sends:
            settle_send(self._recorder, self._process, op, delivery)
        self._sends.clear()


class RecordedConsumer(Consumer):
    """A consumer."""

    def __init__(
        self, owner: RecordedClient, group_id: str | None, options: ConsumerOptions
    ) -> None:
        super().__init__(owner.client._context, group_id, options)
        owner.client._adopt(self)
        self._process = owner.process
        self._recorder = owner.records.recorder
        self._name = f"{owner.process}/{next(owner.records.numbers)}"
        self._isolation_level = options.isolation_level
        self._isolation = _ISOLATION[options.isolation_level]

    def subscribe(
        self,
        topics: Collection[str],
        *,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """See ``Consumer``."""

        async def assigned(partitions: frozenset[TopicPartition]) -> None:
            self._note_assigned(self.assignment())
            if on_assigned is not None:
                await on_assigned(partitions)

        async def revoked(partitions: frozenset[TopicPartition]) -> None:
            if on_revoked is not None:
                await on_revoked(partitions)
            self._note_assigned(self.assignment() - partitions)

        async def lost(partitions: frozenset[TopicPartition]) -> None:
            self._note_assigned(frozenset())
            tell = on_lost or on_revoked
            if tell is not None:
                await tell(partitions)

        super().subscribe(topics, on_assigned=assigned, on_revoked=revoked, on_lost=lost)

    async def poll(
        self, max_records: int = 500, timeout_ms: int = 500
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """See ``Consumer``."""
        operation = Poll(consumer=self._name, isolation=self._isolation)
        op = self._recorder.invoked(self._process, operation)
        before = {} if self._group is not None else self.positions()
        polled = await super().poll(max_records, timeout_ms)
        after = self.positions()
        answer = Polled(
            reads=tuple(
                PartitionRead(
                    partition=Partition(*each),
                    position=before.get(each),
                    next_position=after.get(each),
                    records=read_records(records, self._isolation_level),
                )
                for each, records in polled.items()
            )
        )
        self._recorder.returned(self._process, op, Outcome.OK, answer)
        return polled

    def seek(self, partition: tuple[str, int], offset: int) -> None:
        """See ``Consumer``."""
        super().seek(partition, offset)
        self._note_positions(partition, offset=offset)

    def seek_to_committed(self, *partitions: tuple[str, int]) -> None:
        """See ``Consumer``."""
        super().seek_to_committed(*partitions)
        self._note_positions(*(partitions or sorted(self.assignment())), offset=None)

    def _note_positions(self, *partitions: tuple[str, int], offset: int | None) -> None:
        positions = tuple(GroupOffset(Partition(*partition), offset) for partition in partitions)
        self._recorder.observed(self._process, Positioned(consumer=self._name, positions=positions))

    def _note_assigned(self, partitions: Collection[TopicPartition]) -> None:
        group = self.group_metadata()
        self._recorder.observed(
            self._process,
            Assigned(
                consumer=self._name,
                group=group.group_id,
                member=group.member_id,
                member_epoch=group.member_epoch,
                partitions=tuple(Partition(*partition) for partition in sorted(partitions)),
            ),
        )


def settle_send(recorder: Recorder, process: str, op: int, delivery: Delivery) -> None:
    """Record how a send came back, if it did."""
    if not delivery.done():
        return
    try:
        stored = delivery.result()
    except SemelError as error:
        recorder.returned(process, op, Outcome.UNKNOWN, error=type(error).__name__)
    else:
        recorder.returned(process, op, Outcome.OK, Sent(base_offset=stored.offset))
