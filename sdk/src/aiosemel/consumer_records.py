"""What a consumer hands out: records one by one, or batches of columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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

    def record(self, position: int) -> ConsumerRecord:
        """Make a ConsumerRecord of the record at a position."""
        return ConsumerRecord(
            topic=self.topic_partition.topic,
            partition=self.topic_partition.partition,
            offset=self.offsets[position],
            timestamp_ms=self.timestamps_ms[position],
            key=None if self.keys is None else self.keys[position],
            value=self.values[position],
            headers=self.headers.get(position, ()),
        )

    def records(self) -> Iterator[ConsumerRecord]:
        """Make a ConsumerRecord of each."""
        topic, partition = self.topic_partition
        keys = [None] * len(self.offsets) if self.keys is None else self.keys
        columns = zip(self.offsets, self.timestamps_ms, keys, self.values, strict=True)
        for position, (offset, timestamp_ms, key, value) in enumerate(columns):
            yield ConsumerRecord(
                topic=topic,
                partition=partition,
                offset=offset,
                timestamp_ms=timestamp_ms,
                key=key,
                value=value,
                headers=self.headers.get(position, ()),
            )
