"""Which partition of a topic a record goes to: by its key, else where others just went."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from aiosemel._producer.batching.batch import Batch
from aiosemel._producer.batching.columns import RowColumns, Rows
from aiosemel._shared.name_checks import shown
from aiosemel.errors import UnknownTopicOrPartitionError
from semel_common.ids import TopicPartition
from semel_common.record_batches import partitioner

KEYS_CACHED_MAX = 65_536


key_hash = lru_cache(maxsize=KEYS_CACHED_MAX)(partitioner.key_hash)
"""Of keys that come again and again."""


class Part(NamedTuple):
    """Rows for one partition; None: for any."""

    topic_partition: TopicPartition | None
    rows: Rows


class TopicPartitions:
    """The partitions of one topic, and the sticky one among them."""

    __slots__ = ("count", "limit_bytes", "name", "open_batches", "partitions", "sticky_number")

    def __init__(
        self, name: str, partitions: tuple[TopicPartition, ...], first: int, limit_bytes: int
    ) -> None:
        """Begin with any number ``first``, so that producers do not all begin with the same."""
        self.name = name
        self.limit_bytes = limit_bytes
        """How large a batch of the topic may be, in bytes."""
        self.partitions = partitions
        self.count = len(partitions)
        self.sticky_number = first % self.count
        self.open_batches: list[Batch | None] = [None] * self.count
        """The last batch of each partition that single records began, by partition number."""

    def number_of(self, partition: int | None, key: bytes | None) -> int:
        """Return the number of a record's partition: the given one, that of its key, or the sticky.

        Raises UnknownTopicOrPartitionError.
        """
        if partition is not None:
            return self.numbered(partition).partition
        return self.sticky_number if key is None else key_hash(key) % self.count

    def has(self, partition: int | None) -> bool:
        """Whether there is a partition of this number; None: any will do.

        Any other type is no partition: ``check_partition`` explains it to callers off the fast
        path.
        """
        return partition is None or (type(partition) is int and partition < self.count)

    def numbered(self, partition: int) -> TopicPartition:
        """Return a partition by number; raises UnknownTopicOrPartitionError."""
        if not 0 <= partition < self.count:
            raise UnknownTopicOrPartitionError(
                f"topic {self.name} has {self.count} partitions, no partition {shown(partition)}"
            )
        return self.partitions[partition]

    @property
    def sticky(self) -> TopicPartition:
        """The partition for records without a key, until ``move_on``."""
        return self.partitions[self.sticky_number]

    def move_on(self) -> TopicPartition:
        """Make the next partition the sticky one: the batch of the last is full, or was sent."""
        self.sticky_number = (self.sticky_number + 1) % self.count
        return self.partitions[self.sticky_number]

    def spread(self, columns: RowColumns) -> Iterator[Part]:
        """Part rows by their keys; those of each partition keep their order."""
        rows: dict[int, list[int]] = {}
        count = self.count
        for row, key in enumerate(columns.keys or ()):
            number = -1 if key is None else key_hash(key) % count
            rows.setdefault(number, []).append(row)
        for number, chosen in rows.items():
            part = columns.at(chosen)
            if number < 0:
                yield Part(None, replace(part, keys=None))
            else:
                yield Part(self.partitions[number], part)


def check_partition(partition: object) -> None:
    """Raise TypeError for a partition that is neither an int nor None."""
    if partition is not None and type(partition) is not int:
        raise TypeError(f"partition must be int, not {type(partition).__name__}")
