"""Batches of records, and those of one partition in order. Only the accumulator changes them."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry.trace import Span

from aiosemel._producer.batching.columns import RowColumns
from aiosemel._producer.batching.conditional_append import ConditionalAppend
from aiosemel.errors import SemelError
from semel_common.ids import TopicPartition
from semel_common.record_batches.encoded_records import EncodedRecords
from semel_common.record_batches.headers import HeaderPairs
from semel_common.record_batches.sequence_numbers import next_sequence


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
        "full_bytes",
        "headers",
        "is_done",
        "is_sent",
        "is_uncertain",
        "keys",
        "limit_bytes",
        "number",
        "parts",
        "producer_epoch",
        "producer_id",
        "size_bytes",
        "span",
        "timestamps_ms",
        "topic_partition",
        "trouble",
        "values",
        "was_first",
    )

    def __init__(
        self, topic_partition: TopicPartition, number: int, deadline_ms: float, limit_bytes: int
    ) -> None:
        self.topic_partition = topic_partition
        self.number = number
        """Rises from batch to batch of the accumulator; the parts of a batch have its number."""
        self.deadline_ms = deadline_ms
        self.limit_bytes = limit_bytes
        """How large it may become, as far as its producer knows; one record alone may be larger."""
        self.full_bytes = limit_bytes
        """The size up to which it takes records; -1 once it takes no more."""
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] | None = None
        """None as long as no record has a key."""
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
        self.was_first = False
        """Whether no earlier batch of its partition was in flight when its last attempt left."""
        self.is_uncertain = False
        """Whether the broker may have stored it in an attempt that was not answered."""
        self.is_done = False
        """Whether it is acknowledged or given up, as ``error`` says, or cut into ``parts``."""
        self.parts: tuple[Batch, ...] = ()
        """The batches that took its place and its sequences: the broker found it too large."""
        self.base_offset = -1
        self.error: SemelError | None = None
        self.trouble = ""
        """Why its last attempt has failed, and where."""
        self.expected_base_offset: int | None = None
        """Where alone it may be stored; then it is in flight alone too."""
        self.span: Span | None = None
        """Of its way to the broker, if it is traced."""

    def close(self) -> None:
        """Take no more records: the batch was sent, is done, or another one follows it."""
        self.full_bytes = -1

    def forget_records(self) -> None:
        """Give the memory back: callers that wait for the batch need its numbers only."""
        self.close()
        self.values = []
        self.keys = None
        self.headers = {}
        self.encoded = []

    def add_columns(self, rows: RowColumns, timestamp_ms: int) -> None:
        """Add records; ``timestamp_ms`` is for rows without timestamps."""
        start, count = len(self.values), len(rows.values)
        if rows.keys is not None or self.keys is not None:
            self.add_keys([None] * count if rows.keys is None else rows.keys)
        self.values.extend(rows.values)
        self.timestamps_ms.extend(rows.timestamps_ms or [timestamp_ms] * count)
        for position, pairs in enumerate(rows.headers or (), start):
            if pairs:
                self.headers[position] = pairs

    def add_keys(self, keys: Sequence[bytes | None]) -> None:
        """Add the keys of records, before their values."""
        if self.keys is None:
            self.keys = [None] * len(self.values)
        self.keys.extend(keys)

    def add_encoded(self, records: EncodedRecords, timestamps_ms: Sequence[int]) -> None:
        """Add records that are encoded to a batch of such."""
        self.encoded.append(records)
        self.timestamps_ms.extend(timestamps_ms)

    def add_append(self, append: ConditionalAppend, timestamp_ms: int) -> None:
        """Add the records of an append; ``timestamp_ms`` is for records without timestamps."""
        self.expected_base_offset = append.expected_base_offset
        if append.keys is not None:
            self.add_keys(append.keys)
        self.values.extend(append.values)
        self.timestamps_ms.extend(append.timestamps_ms or [timestamp_ms] * len(append.values))
        self.headers.update(append.headers)

    def unnumber(self) -> None:
        """Take producer epoch and sequence away: another epoch is to give it its own."""
        self.producer_id = self.producer_epoch = self.base_sequence = -1
        self.is_sent = self.is_uncertain = False

    @property
    def record_count(self) -> int:
        """How many records it has, or had."""
        return len(self.timestamps_ms)

    @property
    def may_be_cut(self) -> bool:
        """Whether smaller batches may take its place."""
        return self.record_count > 1 and not self.is_conditional

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

    __slots__ = (
        "has_gap",
        "in_flight",
        "is_refused",
        "next_sequence",
        "producer_epoch",
        "queue",
        "used_ms",
    )

    def __init__(self) -> None:
        self.producer_epoch = -1
        self.in_flight: deque[Batch] = deque()
        self.queue: deque[Batch] = deque()
        self.next_sequence = 0
        self.has_gap = False
        self.is_refused = False
        """Whether the broker expects another sequence than that of the first batch in flight."""
        self.used_ms = 0.0
        """When its last batch was begun."""

    def sendable(self, in_flight_max: int) -> Batch | None:
        """Return the batch that may go next."""
        if self.is_refused:
            return None
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

    def unsent(self) -> list[Batch]:
        """Return the batches that are not on their way to a broker."""
        return [batch for batch in (*self.in_flight, *self.queue) if not batch.is_sent]

    def take(self, batch: Batch, producer_id: int) -> None:
        """Put a sendable batch in flight."""
        if not batch.was_drained:
            self.queue.popleft()
            self.in_flight.append(batch)
            batch.close()
            batch.producer_id = producer_id
            batch.producer_epoch = self.producer_epoch
            batch.base_sequence = self.next_sequence
            self.next_sequence = next_sequence(self.next_sequence, batch.record_count)
        batch.is_sent = True
        batch.was_first = batch is self.in_flight[0]
        batch.attempts += 1

    def remove(self, batch: Batch) -> None:
        """Forget a batch; without its records, the sequences may have a gap."""
        (self.in_flight if batch.was_drained else self.queue).remove(batch)
        if batch.was_drained and batch.error is not None:
            self.has_gap = True

    def replace(self, batch: Batch, parts: Sequence[Batch]) -> None:
        """Put the parts of a batch in its place."""
        batches = self.in_flight if batch.was_drained else self.queue
        at = batches.index(batch)
        del batches[at]
        for part in reversed(parts):
            batches.insert(at, part)

    @property
    def needs_epoch(self) -> bool:
        """Whether the old epoch is of no use any more, and none of its answers is awaited."""
        if self.is_refused:
            return not any(batch.is_sent for batch in self.in_flight)
        return self.has_gap and not self.in_flight

    def restart(self, producer_epoch: int) -> None:
        """Count sequences from 0, in a new epoch, also for the batches that were in flight."""
        assert not any(batch.is_sent for batch in self.in_flight), "the old epoch is in flight"
        while self.in_flight:
            batch = self.in_flight.pop()
            batch.unnumber()
            self.queue.appendleft(batch)
        self.producer_epoch = producer_epoch
        self.next_sequence = 0
        self.has_gap = self.is_refused = False
