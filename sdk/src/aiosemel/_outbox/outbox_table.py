"""The tables of one outbox: which relay is in charge, which rows a version has.

A version is a number and the rows that have it. Its rows never change, so a version that is sent
again is the same version; and the relay claims rows by their missing version, not by their id, so
that it passes over no row of a transaction that commits late.
"""

from dataclasses import dataclass

from aiosemel._database.driver_errors import passing_errors
from aiosemel._database.positions_table import insert_new
from aiosemel.database.contract import DatabaseSession, Dialect, Row
from aiosemel.database.outbox import Outbox, decode_headers
from aiosemel.types.producer_record import ProducerRecord


@dataclass(frozen=True, slots=True)
class Charge:
    """A relay's turn: the owner of the versions, and the version that the next batch gets."""

    owner: str
    next_version: int


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One record that waits."""

    id: int
    record: ProducerRecord


class OutboxTable:
    """The tables of one outbox."""

    def __init__(self, outbox: Outbox, holder: str) -> None:
        self._database = outbox.database
        self._name = outbox.name
        self._holder = holder
        dialect = outbox.database.dialect
        self._insert_relay = insert_new(dialect, "semel_outbox_relay", _RELAY_COLUMNS)
        self._is_mysql = dialect is Dialect.MYSQL

    async def take_charge(self, new_owner: str, now_ms: int, until_ms: int) -> Charge | None:
        """Take charge of the outbox until a time, or go on with it; None: another relay has it.

        ``new_owner`` names the versions of an outbox that has sent nothing yet.
        """
        with passing_errors():
            async with self._database.transaction() as transaction:
                row = (self._name, new_owner, 1, "", 0)
                await transaction.execute(self._insert_relay, row)
                taken = await transaction.execute(
                    _TAKE, (self._holder, until_ms, self._name, self._holder, now_ms)
                )
                rows = await transaction.fetch(_READ_RELAY, (self._name,))
        ((owner, next_version),) = rows
        return Charge(str(owner), _number(next_version)) if taken == 1 else None

    async def leave(self) -> None:
        """Let another relay take charge at once."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                await transaction.execute(_LEAVE, (self._name, self._holder))

    async def set_charge(self, charge: Charge) -> None:
        """Name another owner, or another next version, after a restore."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                row = (charge.owner, charge.next_version, self._name, self._holder)
                await transaction.execute(_SET_CHARGE, row)

    async def versions(self) -> list[int]:
        """Return the versions whose rows are not deleted yet, in their order."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                rows = await transaction.fetch(_VERSIONS, (self._name,))
        return [_number(version) for (version,) in rows]

    async def claim(self, version: int, limit: int, until_ms: int) -> bool | None:
        """Give up to so many waiting rows a version; False: none waits, None: the turn is over."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                if not await transaction.fetch(_ANY, (self._name,)):
                    return False
                moved = await transaction.execute(
                    _ADVANCE, (version + 1, until_ms, self._name, self._holder, version)
                )
                if moved == 1:
                    await self._claim(transaction, version, limit)
        return True if moved == 1 else None

    async def _claim(self, transaction: DatabaseSession[object], version: int, limit: int) -> None:
        if self._is_mysql:
            for (number,) in await transaction.fetch(_WAITING_MYSQL, (self._name, limit)):
                await transaction.execute(_CLAIM_ONE, (version, _number(number)))
        else:
            await transaction.execute(_CLAIM, (version, self._name, limit))

    async def rows(self, version: int) -> list[OutboxRow]:
        """Return the rows of a version, in the order in which they were written."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                found = await transaction.fetch(_ROWS, (self._name, version))
        return [_outbox_row(row) for row in found]

    async def delete(self, version: int) -> None:
        """Delete the rows of a version that is in the topics."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                if self._is_mysql:
                    for (number,) in await transaction.fetch(_IDS, (self._name, version)):
                        await transaction.execute(_DELETE_ONE, (_number(number),))
                else:
                    await transaction.execute(_DELETE, (self._name, version))

    async def delete_all(self) -> None:
        """Delete every row that is there."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                await transaction.execute(_DELETE_ALL, (self._name,))

    async def forget_versions(self) -> None:
        """Let all rows wait for a new version."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                await transaction.execute(_FORGET_VERSIONS, (self._name,))


def _outbox_row(row: Row) -> OutboxRow:
    number, topic, partition, key, value, headers, timestamp_ms = row
    record = ProducerRecord(
        topic=str(topic),
        value=_content(value),
        key=_content(key),
        partition=None if partition is None else _number(partition),
        headers=decode_headers(_content(headers)),
        timestamp_ms=None if timestamp_ms is None else _number(timestamp_ms),
    )
    return OutboxRow(_number(number), record)


def _number(value: object) -> int:
    assert isinstance(value, int), "the column holds numbers"
    return value


def _content(value: object) -> bytes | None:
    if value is None:
        return None
    assert isinstance(value, bytes | memoryview), "the column holds bytes"
    return bytes(value)


_RELAY_COLUMNS = ("outbox", "owner", "next_version", "holder", "held_until_ms")
_TAKE = (
    "UPDATE semel_outbox_relay SET holder = ?, held_until_ms = ?"
    " WHERE outbox = ? AND (holder = ? OR held_until_ms < ?)"
)
_LEAVE = "UPDATE semel_outbox_relay SET held_until_ms = 0 WHERE outbox = ? AND holder = ?"
_SET_CHARGE = (
    "UPDATE semel_outbox_relay SET owner = ?, next_version = ? WHERE outbox = ? AND holder = ?"
)
_READ_RELAY = "SELECT owner, next_version FROM semel_outbox_relay WHERE outbox = ?"
_VERSIONS = (
    "SELECT DISTINCT version FROM semel_outbox WHERE outbox = ? AND version IS NOT NULL"
    " ORDER BY version"
)
_CLAIM = (
    "UPDATE semel_outbox SET version = ? WHERE id IN (SELECT id FROM semel_outbox"
    " WHERE outbox = ? AND version IS NULL ORDER BY id LIMIT ?)"
)
# InnoDB locks each row that a statement looks at, and a small table it reads whole: the relay would
# wait for transactions that are open, and break some as deadlocks. A row by its key it finds alone.
_WAITING_MYSQL = (
    "SELECT id FROM semel_outbox WHERE outbox = ? AND version IS NULL ORDER BY id LIMIT ?"
    " FOR UPDATE SKIP LOCKED"
)
_CLAIM_ONE = "UPDATE semel_outbox SET version = ? WHERE id = ?"
_ADVANCE = (
    "UPDATE semel_outbox_relay SET next_version = ?, held_until_ms = ?"
    " WHERE outbox = ? AND holder = ? AND next_version = ?"
)
_ANY = "SELECT id FROM semel_outbox WHERE outbox = ? AND version IS NULL LIMIT 1"
_ROWS = (
    "SELECT id, topic, topic_partition, record_key, record_value, record_headers, timestamp_ms"
    " FROM semel_outbox WHERE outbox = ? AND version = ? ORDER BY id"
)
_DELETE = "DELETE FROM semel_outbox WHERE outbox = ? AND version = ?"
_IDS = "SELECT id FROM semel_outbox WHERE outbox = ? AND version = ?"
_DELETE_ONE = "DELETE FROM semel_outbox WHERE id = ?"
_DELETE_ALL = "DELETE FROM semel_outbox WHERE outbox = ?"
_FORGET_VERSIONS = "UPDATE semel_outbox SET version = NULL WHERE outbox = ?"
