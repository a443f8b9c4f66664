"""Batches of records, and those of one partition in order. Only the accumulator changes them."""

from collections import deque
from dataclasses import dataclass

from opentelemetry.trace import Span

from aiosemel.errors import SemelError
from semel_common.encoded import EncodedRecords
from semel_common.headers import HeaderPairs
from semel_common.ids import TopicPartition
from semel_common.sequences import next_sequence


class Batch:
    """Records of one partition that are sent, and acknowledged, together."""

    __slots__ = (
        "attempts",
        "base_offset",
        "base_sequence",
        "deadline_ms",
        "encoded",
        "error",
        "expected_base_offset",
        "has_keys",
        "headers",
        "is_done",
        "is_sent",
        "keys",
        "number",
        "producer_epoch",
        "producer_id",
        "size_bytes",
        "span",
        "timestamps_ms",
        "topic_partition",
        "values",
    )

    def __init__(self, topic_partition: TopicPartition, number: int, deadline_ms: float) -> None:
        self.topic_partition = topic_partition
        self.number = number
        """Rises from batch to batch of the accumulator."""
        self.deadline_ms = deadline_ms
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] = []
        self.has_keys = False
        self.timestamps_ms: list[int] = []
        self.headers: dict[int, HeaderPairs] = {}
        self.encoded: list[EncodedRecords] = []
        """In the place of values, keys and headers: a batch has all of one kind."""
        self.size_bytes = 0
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = -1
        self.attempts = 0
        self.is_sent = False
        """Whether it went out, and was not returned by ``retry``."""
        self.is_done = False
        """Whether it is acknowledged or given up: ``error`` says which."""
        self.base_offset = -1
        self.error: SemelError | None = None
        self.expected_base_offset: int | None = None
        """Where alone it may be stored; then it is in flight alone too."""
        self.span: Span | None = None
        """Of its way to the broker, if it is traced."""

    def forget_records(self) -> None:
        """Give the memory back: whoever waits for the batch needs no more than its numbers."""
        self.values = []
        self.keys = []
        self.headers = {}
        self.encoded = []

    @property
    def record_count(self) -> int:
        """How many records it has, or had."""
        return len(self.timestamps_ms)

    @property
    def is_conditional(self) -> bool:
        """Whether it is to be stored at one offset only."""
        return self.expected_base_offset is not None

    @property
    def was_drained(self) -> bool:
        """Whether it has a sequence: the broker may know it."""
        return self.base_sequence >= 0


@dataclass(frozen=True, slots=True)
class Request:
    """Batches for one broker, each of another partition."""

    broker: str
    batches: tuple[Batch, ...]


class PartitionBatches:
    """The batches of one partition, in sequence order: those in flight, then the queue."""

    __slots__ = ("has_gap", "in_flight", "next_sequence", "producer_epoch", "queue", "used_ms")

    def __init__(self) -> None:
        self.producer_epoch = -1
        self.in_flight: deque[Batch] = deque()
        self.queue: deque[Batch] = deque()
        self.next_sequence = 0
        self.has_gap = False
        self.used_ms = 0.0
        """When its last batch was begun."""

    def sendable(self, in_flight_max: int) -> Batch | None:
        if self.in_flight:
            first = self.in_flight[0]
            if not first.is_sent:
                return first
            if self.is_retrying or len(self.in_flight) >= in_flight_max or first.is_conditional:
                return None
        if not self.queue or self.has_gap:
            return None
        following = self.queue[0]
        return None if following.is_conditional and self.in_flight else following

    @property
    def is_retrying(self) -> bool:
        """Whether something in flight was sent again, or is to be."""
        return any(batch.attempts > 1 or not batch.is_sent for batch in self.in_flight)

    def take(self, batch: Batch, producer_id: int) -> None:
        """Put a sendable batch in flight."""
        if not batch.was_drained:
            self.queue.popleft()
            self.in_flight.append(batch)
            batch.producer_id = producer_id
            batch.producer_epoch = self.producer_epoch
            batch.base_sequence = self.next_sequence
            self.next_sequence = next_sequence(self.next_sequence, batch.record_count)
        batch.is_sent = True
        batch.attempts += 1

    def remove(self, batch: Batch) -> None:
        """Forget a batch; without its records, the sequences may have a gap."""
        (self.in_flight if batch.was_drained else self.queue).remove(batch)
        if batch.was_drained and batch.error is not None:
            self.has_gap = True

    def restart(self, producer_epoch: int) -> None:
        """Count sequences from 0, in a new epoch."""
        assert not self.in_flight, "batches of the old epoch are in flight"
        self.producer_epoch = producer_epoch
        self.next_sequence = 0
        self.has_gap = False
