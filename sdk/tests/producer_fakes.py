"""What a partition and a transaction coordinator remember, in the simplest way that shows effects.

It follows protocol.md, sections 3 and 4. ``producer_harness`` puts services around it.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, field

from aiosemel.errors import (
    BaseOffsetMismatchError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    MessageTooLargeError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    TopicNotFoundError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from semel.broker.v1.broker_pb2 import ProducePartition
from semel.common.v1.errors_pb2 import Error
from semel.common.v1.records_pb2 import RecordBatch
from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_common.record_batches.batches import check_crc
from semel_common.record_batches.sequence_numbers import next_sequence
from semel_common.wire import status


@dataclass(slots=True)
class ProducerState:
    """What a partition knows of a producer."""

    fence: int = 0
    epoch: int = -1
    next_sequence: int = 0
    last: deque[RecordBatch] = field(default_factory=lambda: deque(maxlen=5))

    def repeated(self, batch: RecordBatch) -> RecordBatch | None:
        """Return the batch that this one repeats; a repeat must be what it repeats."""
        if batch.producer_epoch != self.epoch:
            return None
        for last in self.last:
            if last.base_sequence == batch.base_sequence:
                assert last.payload == batch.payload, "a repeat is not what it repeats"
                return last
        return None

    def check(self, batch: RecordBatch) -> None:
        """Refuse an old epoch, and a sequence that is not the next."""
        if batch.producer_epoch < max(self.fence, self.epoch):
            raise InvalidProducerEpochError(f"producer epoch {batch.producer_epoch} is old")
        expected = self.next_sequence if batch.producer_epoch == self.epoch else 0
        if batch.base_sequence != expected:
            raise OutOfOrderSequenceNumberError(f"{batch.base_sequence}, not {expected}")

    def took(self, batch: RecordBatch) -> None:
        """Remember a batch."""
        if batch.producer_epoch != self.epoch:
            self.last.clear()
        self.epoch = batch.producer_epoch
        self.next_sequence = next_sequence(batch.base_sequence, batch.record_count)
        self.last.append(batch)


@dataclass(slots=True)
class Log:
    """One partition."""

    leader: int
    max_message_bytes: int = 1_048_588
    batches: list[RecordBatch] = field(default_factory=list)
    producers: defaultdict[int, ProducerState] = field(
        default_factory=lambda: defaultdict(ProducerState)
    )

    def append(self, batch: RecordBatch, asked: ProducePartition) -> int:
        """Store a batch, or know it again; returns its base offset."""
        check_crc(batch, batch.payload)
        producer = self.producers[batch.producer_id]
        repeated = producer.repeated(batch)
        if repeated is not None:
            return repeated.base_offset
        if len(batch.payload) > self.max_message_bytes:
            raise MessageTooLargeError("too large", message_max_bytes=self.max_message_bytes)
        producer.check(batch)
        end = sum(batch.record_count for batch in self.batches)
        if asked.HasField("expected_base_offset") and asked.expected_base_offset != end:
            raise BaseOffsetMismatchError("the log ends elsewhere", log_end_offset=end)
        stored = RecordBatch.FromString(batch.SerializeToString())
        stored.base_offset = end
        producer.took(stored)
        self.batches.append(stored)
        return stored.base_offset

    def raise_fence(self, producer_id: int, epoch: int) -> None:
        """Refuse lower epochs from now on, as after a marker."""
        producer = self.producers[producer_id]
        producer.fence = max(producer.fence, epoch)


@dataclass(slots=True)
class TransactionalId:
    """What the coordinator knows of a transactional id."""

    producer_id: int
    epoch: int = -1
    instance: tuple[str, int] = ("", 0)
    outcomes: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Of the epochs that ended: COMMITTED or ABORTED, and why."""

    def check_repeat(self, epoch: int, *, commit: bool) -> None:
        """Answer EndTxn for an epoch that has ended: the table of protocol.md, section 3."""
        if epoch != self.epoch - 1:
            raise ProducerFencedError("epoch is too old")
        outcome, reason = self.outcomes[epoch]
        if reason == "FENCED":
            raise ProducerFencedError("fenced by a successor", outcome=outcome)
        if commit == (outcome == "COMMITTED"):
            return
        if commit and reason != "CLIENT":
            raise TransactionAbortableError(
                f"aborted: {reason}", outcome=outcome, reason=reason, next_epoch=self.epoch
            )
        raise InvalidTxnStateError("ended otherwise", outcome=outcome)

    def answer(
        self, request: wire.GetTransactionOutcomeRequest
    ) -> wire.GetTransactionOutcomeResponse:
        """Answer GetTransactionOutcome."""
        assert request.producer_id == self.producer_id
        name, reason = self.outcomes.get(request.producer_epoch, ("ONGOING", "UNSPECIFIED"))
        reason = reason if name == "ABORTED" else "UNSPECIFIED"
        return wire.GetTransactionOutcomeResponse(
            outcome=wire.TransactionOutcome.Value(f"TRANSACTION_OUTCOME_{name}"),
            abort_reason=wire.AbortReason.Value(f"ABORT_REASON_{reason}"),
            transactional_id=request.transactional_id,
            producer_id=self.producer_id,
            current_epoch=self.epoch,
            time_left_ms=5_000,
        )


@dataclass(frozen=True, slots=True)
class FixedClock:
    """Always the same time of day."""

    time_ms: int = 1_000

    def now_ms(self) -> int:
        return self.time_ms


def missing(topic: str, *, by_controller: bool) -> Error:
    """Return what is answered for a topic that is not known, or that does not exist."""
    kind = TopicNotFoundError if by_controller else UnknownTopicOrPartitionError
    return status.to_value(kind(f"no topic {topic}"))
