"""Records on their way: batches for each partition, until they are acknowledged or given up.

Theory of operation. Records are appended to the last batch of their partition's *queue*. ``drain``
takes batches from the queues and makes requests of them, each for one broker; a batch then is *in
flight*, and has its producer id, epoch and base sequence, which never change again: a retry sends
it as it was, because brokers know repeats by them (protocol.md, section 4).

What may be drained, for one partition:

* the first batch in flight, if it must be sent again; then nothing else until it is answered,
* else the first batch of the queue, while fewer than ``in_flight_max`` are in flight; one that is
  to be stored at a given offset only when nothing is, and then nothing until it is answered.

Batching needs no timer: a batch that is not full waits while a request to its broker is in flight,
and takes up what is appended meanwhile. ``flush`` lets all go that is there.

A batch that was sent and is given up leaves a gap in the sequences. A transaction with a gap can
only be aborted. Without transactions, the partition goes on in an epoch of its own, as soon as
nothing of the old one is in flight; also after a long silence. No batch ever gets a second
sequence: an earlier attempt of it may still arrive.

Memory is bounded: ``has_room`` says whether a record may be appended; what is appended counts until
its batch is done.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from aiosemel._producer.batch import Batch, PartitionBatches, Request
from aiosemel._producer.columns import RowColumns
from aiosemel._producer.conditional import ConditionalAppend
from aiosemel._unhealed import UNHEALED, UNHEALED_MAX
from aiosemel.errors import (
    OutOfOrderSequenceNumberError,
    RequestTimedOutError,
    RetriableError,
    SemelError,
)
from semel_common.encoded import EncodedRecords
from semel_common.headers import HeaderPairs
from semel_common.ids import TopicPartition

IDLE_EPOCH_MS = 3_600_000
"""After so long without a batch, a partition goes on in an epoch of its own: brokers forget idle
producers, after a day by default, and then take sequence 0 only."""

PARTITIONS_IN_REQUEST = 1_000
"""So many a broker takes in one request."""

BrokerOf = Callable[[TopicPartition], str | None]
"""Returns a name for the broker that leads a partition; None while nobody is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of an accumulator; see ``ProducerOptions``."""

    batch_size_bytes: int
    request_size_max_bytes: int
    memory_bytes: int
    in_flight_max: int
    delivery_timeout_ms: int


class Accumulator:
    """All batches of one producer."""

    def __init__(self, limits: Limits, *, transactional: bool) -> None:
        """Start empty; ``start_epoch`` comes before the first ``drain``."""
        self._limits = limits
        self._transactional = transactional
        self._partitions: dict[TopicPartition, PartitionBatches] = {}
        self._waiting: dict[TopicPartition, PartitionBatches] = {}
        self._numbered: dict[TopicPartition, PartitionBatches] = {}
        self._incomplete: dict[Batch, None] = {}
        self._requests: dict[str, int] = {}
        self._producer_id = -1
        self._producer_epoch = -1
        self._last_number = 0
        self._flush_to = 0
        self.used_bytes = 0
        """Size of all records that are not done."""

    # -- in -------------------------------------------------------------------------------------

    def has_room(self, size_bytes: int) -> bool:
        """Return whether records of this size may be appended now.

        Nothing that fits into a request is larger than all memory: see ``ProducerOptions``.
        """
        return self.used_bytes + size_bytes <= self._limits.memory_bytes

    def open_batch(
        self, topic_partition: TopicPartition, size_bytes: int, *, encoded: bool = False
    ) -> Batch | None:
        """Return the batch that takes records of this size and kind, if it has begun."""
        partition = self._partitions.get(topic_partition)
        if partition is None or not partition.queue:
            return None
        last = partition.queue[-1]
        if last.is_conditional or bool(last.encoded) is not encoded:
            return None
        return last if last.size_bytes + size_bytes <= self._limits.batch_size_bytes else None

    def begin_batch(self, topic_partition: TopicPartition, now_ms: float) -> Batch:
        """Return a new batch, which gets its first records before anything else is done."""
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = self._partitions[topic_partition] = PartitionBatches()
        if self._was_idle(topic_partition, partition, now_ms):
            partition.restart(partition.producer_epoch + 1)
        partition.used_ms = now_ms
        self._last_number += 1
        deadline_ms = now_ms + self._limits.delivery_timeout_ms
        batch = Batch(topic_partition, self._last_number, deadline_ms)
        partition.queue.append(batch)
        self._waiting[topic_partition] = partition
        self._incomplete[batch] = None
        return batch

    def append(
        self,
        batch: Batch,
        *,
        value: bytes | None,
        key: bytes | None,
        timestamp_ms: int,
        headers: HeaderPairs,
        size_bytes: int,
    ) -> None:
        """Append one record to a batch that is open, or has just begun."""
        batch.values.append(value)
        batch.keys.append(key)
        batch.timestamps_ms.append(timestamp_ms)
        if key is not None:
            batch.has_keys = True
        if headers:
            batch.headers[len(batch.values) - 1] = headers
        batch.size_bytes += size_bytes
        self.used_bytes += size_bytes

    def append_columns(
        self,
        batch: Batch,
        *,
        rows: RowColumns,
        timestamp_ms: int,
        size_bytes: int,
    ) -> None:
        """Append many records, as ``append``; ``timestamp_ms`` is for rows without timestamps."""
        start, count = len(batch.values), len(rows.values)
        batch.values.extend(rows.values)
        batch.keys.extend([None] * count if rows.keys is None else rows.keys)
        batch.timestamps_ms.extend(rows.timestamps_ms or [timestamp_ms] * count)
        if rows.keys is not None:
            batch.has_keys = True
        for position, pairs in enumerate(rows.headers or (), start):
            if pairs:
                batch.headers[position] = pairs
        batch.size_bytes += size_bytes
        self.used_bytes += size_bytes

    def append_encoded(
        self,
        batch: Batch,
        *,
        records: EncodedRecords,
        timestamps_ms: Sequence[int],
        size_bytes: int,
    ) -> None:
        """Append many records that are encoded to a batch of such."""
        batch.encoded.append(records)
        batch.timestamps_ms.extend(timestamps_ms)
        batch.has_keys = batch.has_keys or records.keys is not None
        batch.size_bytes += size_bytes
        self.used_bytes += size_bytes

    def append_at(
        self,
        topic_partition: TopicPartition,
        append: ConditionalAppend,
        *,
        timestamp_ms: int,
        now_ms: float,
    ) -> Batch:
        """Append records as a batch of their own, to be stored at one offset only.

        ``timestamp_ms`` is for records without timestamps.
        """
        batch = self.begin_batch(topic_partition, now_ms)
        batch.expected_base_offset = append.expected_base_offset
        batch.values.extend(append.values)
        batch.keys.extend(append.keys or [None] * len(append.values))
        batch.has_keys = append.keys is not None
        batch.timestamps_ms.extend(append.timestamps_ms or [timestamp_ms] * len(append.values))
        batch.headers.update(append.headers)
        batch.size_bytes = append.size_bytes
        self.used_bytes += append.size_bytes
        return batch

    def _was_idle(
        self, topic_partition: TopicPartition, partition: PartitionBatches, now_ms: float
    ) -> bool:
        """Whether the broker may have forgotten what this partition was sent last."""
        return (
            not self._transactional
            and topic_partition in self._numbered
            and not partition.in_flight
            and not partition.queue
            and now_ms - partition.used_ms >= IDLE_EPOCH_MS
        )

    # -- out ------------------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to drain, now or when an answer comes."""
        return bool(self._waiting)

    def start_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Give batches drained from now on another identity; sequences begin at 0."""
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        for partition in self._numbered.values():
            partition.restart(producer_epoch)
        self._numbered.clear()

    def flush(self) -> int:
        """Let everything go that is there now, full or not; returns a number for ``is_flushed``."""
        self._flush_to = self._last_number
        return self._last_number

    def is_flushed(self, number: int) -> bool:
        """Return whether all that was there at a flush is done."""
        oldest = next(iter(self._incomplete), None)
        return oldest is None or oldest.number > number

    def drain(self, broker_of: BrokerOf) -> list[Request]:
        """Make requests of all that may go now."""
        assert self._producer_id >= 0, "no producer id yet"
        requests: list[Request] = []
        while made := self._drain_once(broker_of):
            requests.extend(made)
        return requests

    def _drain_once(self, broker_of: BrokerOf) -> list[Request]:
        """Make at most one request for each broker, with one batch of each partition."""
        chosen: dict[str, list[Batch]] = {}
        sizes: dict[str, int] = {}
        for topic_partition, partition in list(self._waiting.items()):
            batch = partition.sendable(self._limits.in_flight_max)
            broker = None if batch is None else broker_of(topic_partition)
            if batch is None or broker is None or not self._may_go(partition, batch, broker):
                continue
            size = sizes.get(broker, 0) + batch.size_bytes
            batches = chosen.setdefault(broker, [])
            if len(batches) == PARTITIONS_IN_REQUEST or (
                batches and size > self._limits.request_size_max_bytes
            ):
                continue
            sizes[broker] = size
            batches.append(batch)
            self._take(topic_partition, partition, batch)
        for broker in chosen:
            self._requests[broker] = self._requests.get(broker, 0) + 1
        return [Request(broker, tuple(batches)) for broker, batches in chosen.items()]

    def _may_go(self, partition: PartitionBatches, batch: Batch, broker: str) -> bool:
        in_flight = self._requests.get(broker, 0)
        if not in_flight:
            return True
        return in_flight < self._limits.in_flight_max and (
            batch.number <= self._flush_to
            or batch.was_drained
            or batch.is_conditional
            or len(partition.queue) > 1
            or batch.size_bytes >= self._limits.batch_size_bytes
        )

    def _take(
        self, topic_partition: TopicPartition, partition: PartitionBatches, batch: Batch
    ) -> None:
        if topic_partition not in self._numbered:
            self._numbered[topic_partition] = partition
            partition.restart(self._producer_epoch)
        partition.take(batch, self._producer_id)
        if not partition.queue and all(batch.is_sent for batch in partition.in_flight):
            del self._waiting[topic_partition]

    # -- answers --------------------------------------------------------------------------------

    def answered(self, request: Request) -> None:
        """Note that a request is over, whatever came of it; the next may go."""
        self._requests[request.broker] -= 1

    def acknowledge(self, batch: Batch, base_offset: int) -> None:
        """Note that a batch is stored. Of one that is done already: nothing."""
        if not batch.is_done:
            batch.base_offset = base_offset
            self._finish(batch)

    def may_retry(self, batch: Batch, error: SemelError) -> bool:
        """Return whether a batch that was refused may be sent again.

        A gap before a batch that is not the first in flight may close: those before it are retried.
        """
        if batch.is_done:
            return False
        if isinstance(error, UNHEALED) and batch.attempts >= UNHEALED_MAX:
            return False
        first = self._partitions[batch.topic_partition].in_flight[0]
        waits_for_first = isinstance(error, OutOfOrderSequenceNumberError) and batch is not first
        return isinstance(error, RetriableError) or waits_for_first

    def retry(self, batch: Batch) -> None:
        """Send a batch again, as it is. Of one that is done already: nothing."""
        if not batch.is_done:
            batch.is_sent = False
            partition = self._partitions[batch.topic_partition]
            self._waiting[batch.topic_partition] = partition

    def fail(self, batch: Batch, error: SemelError) -> None:
        """Give a batch up. Of one that is done already: nothing."""
        if not batch.is_done:
            batch.error = error
            self._finish(batch)

    def has_unacknowledged(self, topic_partition: TopicPartition) -> bool:
        """Return whether something was sent to a partition, and is not done."""
        return bool(self._partitions[topic_partition].in_flight)

    def next_deadline_ms(self) -> float | None:
        """Return when the oldest batch is given up."""
        oldest = next(iter(self._incomplete), None)
        return None if oldest is None else oldest.deadline_ms

    def expire(self, now_ms: float) -> list[Batch]:
        """Give up, and return, the batches whose time is up."""
        expired = list(self._until(now_ms))
        for batch in expired:
            self.fail(batch, _expired(batch, self._limits.delivery_timeout_ms))
        return expired

    def fail_queued(self, error: SemelError) -> list[Batch]:
        """Give up, and return, the batches that were never sent."""
        queued = [batch for batch in self._incomplete if not batch.was_drained]
        for batch in queued:
            self.fail(batch, error)
        return queued

    def unsent(self, topic_partition: TopicPartition) -> list[Batch]:
        """Return the batches of a partition that are not on their way to a broker."""
        partition = self._partitions[topic_partition]
        return [batch for batch in (*partition.in_flight, *partition.queue) if not batch.is_sent]

    def fail_all(self, error: SemelError) -> list[Batch]:
        """Give up, and return, all batches."""
        batches = list(self._incomplete)
        for batch in batches:
            self.fail(batch, error)
        return batches

    def _until(self, now_ms: float) -> Iterator[Batch]:
        for batch in self._incomplete:
            if batch.deadline_ms > now_ms:
                return
            yield batch

    def _finish(self, batch: Batch) -> None:
        batch.is_done = True
        self.used_bytes -= batch.size_bytes
        del self._incomplete[batch]
        partition = self._partitions[batch.topic_partition]
        partition.remove(batch)
        if partition.has_gap and not partition.in_flight and not self._transactional:
            partition.restart(partition.producer_epoch + 1)
        if not partition.queue and not partition.in_flight:
            self._waiting.pop(batch.topic_partition, None)
        batch.forget_records()


def _expired(batch: Batch, timeout_ms: int) -> RequestTimedOutError:
    sent = f"sent {batch.attempts} times" if batch.was_drained else "never sent"
    return RequestTimedOutError(
        f"{batch.record_count} records for partition {batch.topic_partition.partition} were not "
        f"acknowledged in {timeout_ms} ms, {sent}"
    )
