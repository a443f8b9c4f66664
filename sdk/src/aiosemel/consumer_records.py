"""What a consumer hands out: records one by one, or batches of columns."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from aiosemel.offsets import TopicPartition
from semel_common.headers import HeaderPairs


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRecord:
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
        )

    def between(self, start_offset: int, end_offset: int) -> "ColumnBatch":
        """Return the records from ``start_offset`` on, up to before ``end_offset``."""
        start = bisect_left(self.offsets, start_offset)
        return self.slice(start, bisect_left(self.offsets, end_offset, start))

    def record(self, position: int) -> ConsumerRecord:
        """Make a ConsumerRecord of the record at a position."""
        return _made(
            self.topic_partition,
            self.offsets[position],
            self.timestamps_ms[position],
            None if self.keys is None else self.keys[position],
            self.values[position],
            self.headers.get(position, ()),
        )

    def records(self) -> list[ConsumerRecord]:
        """Make a ConsumerRecord of each."""
        keys = [None] * len(self.offsets) if self.keys is None else self.keys
        headers: Iterable[HeaderPairs] = (
            [self.headers.get(position, ()) for position in range(len(self.offsets))]
            if self.headers
            else repeat(())
        )
        columns = zip(self.offsets, self.timestamps_ms, keys, self.values, headers, strict=False)
        return [_made(self.topic_partition, *row) for row in columns]


# Every record that a consumer reads is made here. The constructor of a frozen dataclass sets each
# field by its name, past its own guard; setting the slots themselves takes a third of the time.
_new = ConsumerRecord.__new__
_set_topic = ConsumerRecord.__dict__["topic"].__set__
_set_partition = ConsumerRecord.__dict__["partition"].__set__
_set_offset = ConsumerRecord.__dict__["offset"].__set__
_set_timestamp_ms = ConsumerRecord.__dict__["timestamp_ms"].__set__
_set_key = ConsumerRecord.__dict__["key"].__set__
_set_value = ConsumerRecord.__dict__["value"].__set__
_set_headers = ConsumerRecord.__dict__["headers"].__set__


def _made(
    topic_partition: TopicPartition,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: HeaderPairs,
) -> ConsumerRecord:
    record = _new(ConsumerRecord)
    topic, partition = topic_partition
    _set_topic(record, topic)
    _set_partition(record, partition)
    _set_offset(record, offset)
    _set_timestamp_ms(record, timestamp_ms)
    _set_key(record, key)
    _set_value(record, value)
    _set_headers(record, headers)
    return record
