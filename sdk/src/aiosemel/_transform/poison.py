"""The records that one transaction consumes, and which of them are suspected to be poison.

Theory of operation. When a handler fails on several records, any of them may be to blame. So all of
them become *suspects*: until they are past, each transaction consumes one record only. A record
that fails alone is to blame: its failures are counted, and past the limit it is *poison*.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aiosemel.types.consumer_records import ConsumerRecord
from aiosemel.types.offsets import OffsetAndMetadata, TopicPartition


class Input:
    """Records that were polled and not yet consumed by a transaction that committed."""

    def __init__(self) -> None:
        self._records: dict[TopicPartition, list[ConsumerRecord]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._records.values()))

    def add(self, polled: Mapping[TopicPartition, Iterable[ConsumerRecord]]) -> None:
        """Take what one poll returned."""
        for topic_partition, records in polled.items():
            taken = self._records.setdefault(topic_partition, [])
            taken.extend(records)

    def size_bytes(self) -> int:
        """Return what keys and values take: looks at each record, so ask only where it matters."""
        return sum(
            [
                len(record.key or b"") + len(record.value or b"")
                for records in self._records.values()
                for record in records
            ]
        )

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the records of partitions that belong to another member now."""
        for topic_partition in partitions:
            self._records.pop(topic_partition, None)

    def records(self) -> list[ConsumerRecord]:
        """Return all records, partition after partition in offset order."""
        return [record for each in sorted(self._records) for record in self._records[each]]

    def starts(self) -> dict[TopicPartition, int]:
        """Return where to go back to, if they are to be read again."""
        return {each: records[0].offset for each, records in self._records.items()}

    def last(self) -> dict[TopicPartition, ConsumerRecord]:
        """Return the last record of each partition."""
        return {each: records[-1] for each, records in self._records.items()}

    def ends(
        self, positions: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where the group goes on after them.

        That is the consumer's position, which may lie behind markers that follow the last record.
        """
        ends = {each: records[-1].offset + 1 for each, records in self._records.items()}
        return {
            each: OffsetAndMetadata(max(end, positions.get(each, end)))
            for each, end in ends.items()
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """How often a record failed alone, and how at last."""

    count: int
    error: Exception


class Suspects:
    """Which records are read one by one, and how often each has failed."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._until: dict[TopicPartition, int] = {}
        self._failures: dict[tuple[TopicPartition, int], Failure] = {}

    @property
    def any(self) -> bool:
        """Whether records are to be read one by one."""
        return bool(self._until)

    def failed(self, records: list[ConsumerRecord], error: Exception) -> None:
        """Note that the handler failed on these."""
        for record in records:
            topic_partition = TopicPartition(record.topic, record.partition)
            until = max(self._until.get(topic_partition, 0), record.offset + 1)
            self._until[topic_partition] = until
        if len(records) == 1:
            key = _key(records[0])
            known = self._failures.get(key)
            self._failures[key] = Failure(1 if known is None else known.count + 1, error)

    def poison(self, records: list[ConsumerRecord]) -> Failure | None:
        """Return why a record is given up, if it stands alone and has failed too often."""
        failure = self._failures.get(_key(records[0])) if len(records) == 1 else None
        return failure if failure is not None and failure.count > self._retries else None

    def passed(self, ends: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Note that everything before these offsets is consumed."""
        for topic_partition, (end, _) in ends.items():
            if end >= self._until.get(topic_partition, end + 1):
                self.forget((topic_partition,))

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions: they are past, or belong to another member."""
        for topic_partition in partitions:
            self._until.pop(topic_partition, None)
            for key in [key for key in self._failures if key[0] == topic_partition]:
                del self._failures[key]


def _key(record: ConsumerRecord) -> tuple[TopicPartition, int]:
    return TopicPartition(record.topic, record.partition), record.offset
