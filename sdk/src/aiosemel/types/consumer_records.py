"""The records of a consumer: one by one, or as batches of columns."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from aiosemel.types.batch_outcome import BatchOutcome
from aiosemel.types.offsets import TopicPartition
from semel_common.record_batches.headers import HeaderPairs


class ConsumerRecord(NamedTuple):
    """One record that was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    """Milliseconds since 1970-01-01 UTC."""
    key: bytes | None
    value: bytes | None
    headers: HeaderPairs = ()
    """Names and values, in the order in which they were sent; a name may come twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBatch:
    """Records of one partition as columns of the same length, in offset order.

    ``keys`` is None when no record has a key. ``headers`` has an entry only for the positions that
    have headers.
    """

    topic_partition: TopicPartition
    offsets: Sequence[int]
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    timestamps_ms: Sequence[int]
    headers: Mapping[int, HeaderPairs]
    producer_id: int = 0
    """0: written without idempotence."""
    producer_epoch: int = 0
    is_transactional: bool = False
    """Whether a transaction of this producer id and epoch wrote them."""
    outcome: BatchOutcome | None = None
    """What had become of them when the broker read them. Only ``SemelClient.read_range`` asks for
    it, with ``with_outcomes``. None: nothing asked, or the broker's release does not tell."""

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, start: int, stop: int) -> "ColumnBatch":
        """Return the records at positions ``start`` to ``stop`` - 1."""
        if start == 0 and stop == len(self.offsets):
            return self
        return ColumnBatch(
            topic_partition=self.topic_partition,
            offsets=self.offsets[start:stop],
            values=self.values[start:stop],
            keys=None if self.keys is None else self.keys[start:stop],
            timestamps_ms=self.timestamps_ms[start:stop],
            headers={at - start: pairs for at, pairs in self.headers.items() if start <= at < stop},
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            is_transactional=self.is_transactional,
            outcome=self.outcome,
        )

    def between(self, start_offset: int, end_offset: int) -> "ColumnBatch":
        """Return the records from ``start_offset`` on, up to before ``end_offset``."""
        start = bisect_left(self.offsets, start_offset)
        return self.slice(start, bisect_left(self.offsets, end_offset, start))

    def record(self, position: int) -> ConsumerRecord:
        """Make a ConsumerRecord of the record at a position."""
        topic, partition = self.topic_partition
        return ConsumerRecord(
            topic,
            partition,
            self.offsets[position],
            self.timestamps_ms[position],
            None if self.keys is None else self.keys[position],
            self.values[position],
            self.headers.get(position, ()),
        )

    def records(self) -> list[ConsumerRecord]:
        """Make a ConsumerRecord of each."""
        topic, partition = self.topic_partition
        columns = zip(
            repeat(topic),
            repeat(partition),
            self.offsets,
            self.timestamps_ms,
            self.keys or repeat(None),
            self.values,
            map(self.headers.get, range(len(self)), repeat(())) if self.headers else repeat(()),
            strict=False,
        )
        # As ``ConsumerRecord._make``, without a call of Python's for each.
        return list(map(tuple.__new__, repeat(ConsumerRecord), columns))
