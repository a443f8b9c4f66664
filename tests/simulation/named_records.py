"""Records as a history knows them: by values that are unique in the run, with their sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from semel_checker.names import Partition, Source
from semel_checker.operations import PolledRecord, SentRecord

from aiosemel import ConsumerRecord, Headers, IsolationLevel

SOURCE = "source"
"""The header that names the record a derived one was made of: ``topic/partition/offset``."""
VALUE = "value"
"""The header in which a tombstone has its name."""


@dataclass(frozen=True, slots=True)
class NamedRecord:
    """A record with a value that is unique in the run; a tombstone has it in a header."""

    value: str
    key: bytes | None = None
    tombstone: bool = False
    headers_beside: Headers = ()

    @classmethod
    def of(cls, stored: bytes | None, key: bytes | None, headers: Headers) -> Self:
        """Take a record as it is stored."""
        text = dict(headers)[VALUE] if stored is None else stored
        assert text is not None
        return cls(text.decode(), key, stored is None, tuple(headers))

    @property
    def stored(self) -> bytes | None:
        """The value that is stored."""
        return None if self.tombstone else self.value.encode()

    @property
    def headers(self) -> Headers:
        """The headers that are stored beside the value."""
        return ((VALUE, self.value.encode()),) if self.tombstone else self.headers_beside

    def as_sent(self) -> SentRecord:
        """Return it as it stands in a history."""
        return SentRecord(
            self.value,
            source=_source_of(self.headers_beside),
            key=None if self.key is None else self.key.decode(),
            tombstone=self.tombstone,
        )


MADE_UP = "made up"
"""How values begin that were sent in an epoch that was never given out."""


def source_header(group: str, record: ConsumerRecord) -> Headers:
    """Return the header that names a record's source."""
    text = f"{group}/{record.topic}/{record.partition}/{record.offset}"
    return ((SOURCE, text.encode()),)


def read_records(
    records: Sequence[ConsumerRecord], isolation: IsolationLevel
) -> tuple[PolledRecord, ...]:
    """Return records as a history has them: only uncommitted reads may show made-up records."""
    read = map(_read, records)
    if isolation is IsolationLevel.READ_COMMITTED:
        return tuple(read)
    return tuple(each for each in read if not each.value.startswith(MADE_UP))


def _read(record: ConsumerRecord) -> PolledRecord:
    named = NamedRecord.of(record.value, record.key, record.headers)
    return PolledRecord(record.offset, named.value)


def _source_of(headers: Headers) -> Source | None:
    for name, value in headers:
        if name == SOURCE and value is not None:
            group, topic, partition, offset = value.decode().split("/")
            return Source(group, Partition(topic, int(partition)), int(offset))
    return None
