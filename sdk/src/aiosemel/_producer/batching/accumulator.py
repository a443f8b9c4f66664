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
nothing of the old one is in flight; also after a silence.

A broker forgets idle producers, and then refuses every sequence but 0. Without transactions, the
first batch in flight, with all behind it, is sent again in a new epoch then, once their answers are
there (KIP-360). A batch never gets a second sequence while an attempt of it may be stored: each of
the first batch was refused, and a batch behind it lacks its predecessor in the old epoch. If an
attempt had no answer, the broker must have remembered the producer for longer than the batch lives.
A producer whose token is refused needs another id. Nothing is sent then until every request is
answered, and ``start_epoch`` gives the new id to all batches of which no attempt may be stored.

A batch that its broker finds too large is cut: the parts take its place and its sequences.
Memory is bounded: ``has_room`` says whether a record may be appended.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from math import inf

from aiosemel._cluster.permanent_errors import UNHEALED, UNHEALED_MAX
from aiosemel._producer.batching.batch import Batch, PartitionBatches, Request
from aiosemel._producer.batching.columns import RowColumns
from aiosemel._producer.batching.conditional_append import ConditionalAppend
from aiosemel._producer.batching.limits import (
    IDLE_EPOCH_MS,
    PARTITIONS_IN_REQUEST,
    REQUESTS_IN_FLIGHT_MAX,
    Limits,
)
from aiosemel._producer.batching.refused_batches import NOT_STORED, is_missing_for_good, needs_epoch
from aiosemel.errors import (
    InvalidProducerTokenError,
    MessageTooLargeError,
    OutOfOrderSequenceNumberError,
    RetriableError,
    SemelError,
)
from semel_common.ids import TopicPartition
from semel_common.record_batches.encoded_records import EncodedRecords
from semel_common.record_batches.headers import HeaderPairs
from semel_common.untrusted_text import natural_number

BrokerOf = Callable[[TopicPartition], str | None]
"""Returns a name for the broker that leads a partition; None while the leader is unknown."""
Cut = Callable[[Batch, int], tuple[Batch, ...]]
"""Returns the parts of a batch, each within a limit in bytes: ``splitting`` opens its records."""


class Accumulator:
    """All batches of one producer."""

    def __init__(self, limits: Limits, *, transactional: bool, cut: Cut) -> None:
        """Start empty; ``start_epoch`` comes before the first ``drain``."""
        self._limits = limits
        self._cut_batch = cut
        self._transactional = transactional
        self._partitions: dict[TopicPartition, PartitionBatches] = {}
        self._waiting: dict[TopicPartition, PartitionBatches] = {}
        self._numbered: dict[TopicPartition, PartitionBatches] = {}
        self._incomplete: dict[Batch, None] = {}
        self._requests: dict[str, int] = {}
        self._topic_limits: dict[str, int] = {}
        """What brokers said when they refused batches, by topic id, in bytes."""
        self._producer_id = -1
        self._producer_epoch = -1
        self._last_number = 0
        self._flush_to = 0
        self.memory_bytes = limits.memory_bytes
        self.used_bytes = 0
        """Size of all records that are not done."""

    # -- in -------------------------------------------------------------------------------------

    def has_room(self, size_bytes: int) -> bool:
        """Return whether records of this size may be appended now; all memory holds any request."""
        return self.used_bytes + size_bytes <= self.memory_bytes

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
        return last if last.size_bytes + size_bytes <= last.full_bytes else None

    def batch_limit(self, topic_id: str, configured_bytes: int) -> int:
        """Return how large a batch of a topic may become: as its options say, or its brokers."""
        return min(configured_bytes, self._topic_limits.get(topic_id, configured_bytes))

    def forget_limits(self) -> None:
        """Believe the options of topics again, which may have been changed."""
        self._topic_limits.clear()

    def begin_batch(
        self, topic_partition: TopicPartition, now_ms: float, limit_bytes: int
    ) -> Batch:
        """Return a new batch, which gets its first records before anything else is done."""
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = self._partitions[topic_partition] = PartitionBatches()
        if self._was_idle(topic_partition, partition, now_ms):
            partition.restart(partition.producer_epoch + 1)
        partition.used_ms = now_ms
        if partition.queue:
            partition.queue[-1].close()
        self._last_number += 1
        deadline_ms = now_ms + self._limits.delivery_timeout_ms
        batch = Batch(topic_partition, self._last_number, deadline_ms, limit_bytes)
        batch.full_bytes = min(limit_bytes, self._limits.batch_size_bytes)
        partition.queue.append(batch)
        self._waiting[topic_partition] = partition
        self._incomplete[batch] = None
        return batch

    def append(
        self,
        batch: Batch,
        value: bytes | None,
        key: bytes | None,
        timestamp_ms: int,
        headers: HeaderPairs,
        size_bytes: int,
    ) -> int:
        """Append one record to a batch that is open, or has just begun; return its position."""
        timestamps_ms = batch.timestamps_ms
        position = len(timestamps_ms)
        timestamps_ms.append(timestamp_ms)
        if batch.keys is not None:
            batch.keys.append(key)
        elif key is not None:
            batch.add_keys((key,))
        batch.values.append(value)
        if headers:
            batch.headers[position] = headers
        batch.size_bytes += size_bytes
        self.used_bytes += size_bytes
        return position

    def append_columns(
        self, batch: Batch, *, rows: RowColumns, timestamp_ms: int, size_bytes: int
    ) -> None:
        """Append many records, as ``append``; ``timestamp_ms`` is for rows without timestamps."""
        batch.add_columns(rows, timestamp_ms)
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
        batch.add_encoded(records, timestamps_ms)
        batch.size_bytes += size_bytes
        self.used_bytes += size_bytes

    def append_at(
        self,
        topic_partition: TopicPartition,
        append: ConditionalAppend,
        *,
        timestamp_ms: int,
        now_ms: float,
        limit_bytes: int,
    ) -> Batch:
        """Append records as a batch of their own, to be stored at one offset only.

        ``timestamp_ms`` is for records without timestamps.
        """
        batch = self.begin_batch(topic_partition, now_ms, limit_bytes)
        batch.add_append(append, timestamp_ms)
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

    @property
    def needs_producer_id(self) -> bool:
        """Whether nothing goes before the next ``start_epoch``."""
        return self._producer_id < 0

    @property
    def is_answered(self) -> bool:
        """Whether no batch is on its way: each that was sent goes again, or is done."""
        numbered = self._numbered.values()
        return not any(batch.is_sent for each in numbered for batch in each.in_flight)

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
        return in_flight < REQUESTS_IN_FLIGHT_MAX and (
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

    def refuse(self, batch: Batch, error: SemelError, now_ms: float = inf) -> bool:
        """Take a refusal; return whether the batch goes again after ``retry``. Else ``fail`` it.

        ``now_ms`` is of the clock of deadlines; infinite: unknown. If the batch was not the first
        in flight, a gap before it may close: its predecessors are retried, or stored meanwhile.
        """
        if batch.is_done:
            return False
        batch.is_uncertain = batch.is_uncertain or not isinstance(error, NOT_STORED)
        if isinstance(error, UNHEALED) and batch.attempts >= UNHEALED_MAX:
            return False
        if isinstance(error, OutOfOrderSequenceNumberError):
            partition = self._partitions[batch.topic_partition]
            age_ms = now_ms - (batch.deadline_ms - self._limits.delivery_timeout_ms)
            if not self._transactional and needs_epoch(batch, error, age_ms=age_ms):
                partition.is_refused = True
            return partition.is_refused or not batch.was_first
        if isinstance(error, InvalidProducerTokenError):
            return self._lose_producer_id(batch)
        return isinstance(error, RetriableError)

    def _lose_producer_id(self, batch: Batch) -> bool:
        """Need another producer id; returns whether the batch may have it."""
        if self._transactional or batch.is_uncertain or batch.attempts >= UNHEALED_MAX:
            return False
        if batch.producer_id == self._producer_id:
            self._producer_id = -1
        return True

    def retry(self, batch: Batch) -> None:
        """Send a batch again, as it is. Of one that is done already: nothing."""
        if not batch.is_done:
            batch.is_sent = False
            partition = self._partitions[batch.topic_partition]
            self._waiting[batch.topic_partition] = partition
            self._restart_if_answered(partition)

    def split(self, batch: Batch, error: SemelError) -> tuple[Batch, ...]:
        """Cut a batch that its broker finds too large; return its parts, or nothing.

        A single record cannot be cut; a batch for one given offset may not be.
        """
        if not isinstance(error, MessageTooLargeError) or batch.is_done or not batch.may_be_cut:
            return ()
        limit_bytes = natural_number(error.details.get("message_max_bytes", "")) or batch.size_bytes
        if limit_bytes < batch.size_bytes:
            self._learn(batch.topic_partition.topic_id, limit_bytes)
        else:
            limit_bytes = batch.size_bytes // 2
        self._cut({batch: self._cut_batch(batch, limit_bytes)})
        return batch.parts

    def _learn(self, topic_id: str, limit_bytes: int) -> None:
        """Cut the batches that wait, too, and begin no larger batch."""
        self._topic_limits[topic_id] = limit_bytes
        self._cut(
            {
                batch: self._cut_batch(batch, limit_bytes)
                for batch in self._incomplete
                if batch.topic_partition.topic_id == topic_id
                and not batch.was_drained
                and batch.size_bytes > limit_bytes
                and batch.may_be_cut
            }
        )

    def _cut(self, whole: Mapping[Batch, tuple[Batch, ...]]) -> None:
        """Put parts in the place of batches, everywhere."""
        for batch, parts in whole.items():
            batch.parts = parts
            partition = self._partitions[batch.topic_partition]
            partition.replace(batch, parts)
            self._waiting[batch.topic_partition] = partition
            self.used_bytes += sum(part.size_bytes for part in parts) - batch.size_bytes
            batch.is_done = True
            batch.forget_records()
            self._restart_if_answered(partition)
        self._incomplete = dict.fromkeys(
            part for batch in self._incomplete for part in batch.parts or (batch,)
        )

    def fail(self, batch: Batch, error: SemelError) -> None:
        """Give a batch up. Of one that is done already: nothing."""
        if not batch.is_done:
            batch.error = error
            partition = self._partitions[batch.topic_partition]
            if is_missing_for_good(partition, batch, error):
                partition.is_refused = True
            self._finish(batch)

    def has_unacknowledged(self, topic_partition: TopicPartition) -> bool:
        """Return whether something was sent to a partition, and is not done."""
        return bool(self._partitions[topic_partition].in_flight)

    def next_deadline_ms(self) -> float | None:
        """Return when the oldest batch is given up."""
        return next((oldest.deadline_ms for oldest in self._incomplete), None)

    def expire(self, now_ms: float, error_of: Callable[[Batch], SemelError]) -> list[Batch]:
        """Give up, and return, the batches whose time is up, each with its error."""
        expired = list(takewhile(lambda each: each.deadline_ms <= now_ms, self._incomplete))
        for batch in expired:
            self.fail(batch, error_of(batch))
        return expired

    def fail_queued(self, error: SemelError) -> list[Batch]:
        """Give up, and return, the batches that were never sent."""
        return self._fail([batch for batch in self._incomplete if not batch.was_drained], error)

    def unsent(self, topic_partition: TopicPartition) -> list[Batch]:
        """Return the batches of a partition that are not on their way to a broker."""
        return self._partitions[topic_partition].unsent()

    def fail_all(self, error: SemelError) -> list[Batch]:
        """Give up, and return, all batches."""
        return self._fail([*self._incomplete], error)

    def _fail(self, batches: list[Batch], error: SemelError) -> list[Batch]:
        for batch in batches:
            self.fail(batch, error)
        return batches

    def _finish(self, batch: Batch) -> None:
        batch.is_done = True
        self.used_bytes -= batch.size_bytes
        del self._incomplete[batch]
        partition = self._partitions[batch.topic_partition]
        partition.remove(batch)
        self._restart_if_answered(partition)
        if not partition.queue and not partition.in_flight:
            self._waiting.pop(batch.topic_partition, None)
        batch.forget_records()

    def _restart_if_answered(self, partition: PartitionBatches) -> None:
        if partition.needs_epoch and not self._transactional and not self.needs_producer_id:
            partition.restart(partition.producer_epoch + 1)
