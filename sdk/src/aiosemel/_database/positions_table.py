"""The table of positions: where a group goes on in each log, moved by compare-and-set.

The compare-and-set is the fence: of two instances that process the same records, the database lets
one commit, whatever the group says.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from aiosemel.database.contract import DatabaseSession, Dialect
from aiosemel.types.consumer_records import ConsumerRecord


@dataclass(frozen=True, slots=True)
class LogKey:
    """One log: a deleted topic and a new one of its name have different ids."""

    topic_id: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPosition:
    """Where a group goes on in a log."""

    next_offset: int
    last_offset: int | None = None
    """Of the last record that was processed; None: none was."""
    last_crc: int | None = None
    """What ``checksum`` says of that record."""


def checksum(record: ConsumerRecord) -> int:
    """Return a number by which another record in its place is noticed."""
    crc = zlib.crc32(b"%d %d" % (record.offset, record.timestamp_ms))
    for part in (record.key, record.value):
        crc = zlib.crc32(b"-" if part is None else b"%d " % len(part) + part, crc)
    return crc


class PositionsTable:
    """The positions of one group."""

    def __init__(self, group: str, dialect: Dialect) -> None:
        self._group = group
        self._insert = insert_new(dialect, "semel_position", _COLUMNS)

    async def read(
        self, transaction: DatabaseSession[object], keys: Iterable[LogKey]
    ) -> dict[LogKey, StoredPosition]:
        """Return the positions that are stored."""
        found = {}
        for key in keys:
            rows = await transaction.fetch(_READ, (self._group, key.topic_id, key.partition))
            for next_offset, last_offset, last_crc in rows:
                assert isinstance(next_offset, int), "the column holds numbers"
                found[key] = StoredPosition(
                    next_offset=next_offset,
                    last_offset=last_offset if isinstance(last_offset, int) else None,
                    last_crc=last_crc if isinstance(last_crc, int) else None,
                )
        return found

    async def insert(
        self, transaction: DatabaseSession[object], key: LogKey, start: int, now_ms: int
    ) -> None:
        """Store where a log begins for the group, unless a position is stored."""
        row = (self._group, key.topic_id, key.partition, start, None, None, now_ms)
        await transaction.execute(self._insert, row)

    async def move(
        self,
        transaction: DatabaseSession[object],
        key: LogKey,
        expected: int,
        to: StoredPosition,
        now_ms: int,
    ) -> bool:
        """Move a position; False if it is not where the caller expects it."""
        moved = await transaction.execute(
            _MOVE,
            (
                to.next_offset,
                to.last_offset,
                to.last_crc,
                now_ms,
                self._group,
                key.topic_id,
                key.partition,
                expected,
            ),
        )
        return moved == 1


def insert_new(dialect: Dialect, table: str, columns: tuple[str, ...]) -> str:
    """Return a statement that inserts a row unless one with its key is there.

    ``columns`` begin with one of the key. In MySQL, the number of rows does not say which of both
    happened.
    """
    names, values = ", ".join(columns), ", ".join("?" * len(columns))
    insert = f"INSERT INTO {table} ({names}) VALUES ({values})"  # noqa: S608 - our own names
    if dialect is Dialect.MYSQL:  # INSERT IGNORE would ignore all other errors, too.
        return f"{insert} ON DUPLICATE KEY UPDATE {columns[0]} = {columns[0]}"
    return f"{insert} ON CONFLICT DO NOTHING"


_COLUMNS = (
    "consumer_group",
    "topic_id",
    "topic_partition",
    "next_offset",
    "last_offset",
    "last_crc",
    "updated_at_ms",
)
_WHERE = "WHERE consumer_group = ? AND topic_id = ? AND topic_partition = ?"
_READ = f"SELECT next_offset, last_offset, last_crc FROM semel_position {_WHERE}"  # noqa: S608 - our own names
_MOVE = (
    "UPDATE semel_position SET next_offset = ?, last_offset = ?, last_crc = ?, updated_at_ms = ?"  # noqa: S608 - our own names
    f" {_WHERE} AND next_offset = ?"
)
