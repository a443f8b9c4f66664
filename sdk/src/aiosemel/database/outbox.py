"""An outbox: records that an application writes in its own transaction, for a relay to send."""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from aiosemel._producer.batching.record_sizes import Headers
from aiosemel._shared.name_checks import check_topic_names
from aiosemel._shared.value_checks import check_name
from aiosemel.database.contract import Database, Value
from aiosemel.database.placeholders import formatted
from aiosemel.database.tables import check_key
from aiosemel.errors import InvalidConfigError

_INSERT = (
    "INSERT INTO semel_outbox"
    " (outbox, topic, topic_partition, record_key, record_value, record_headers, timestamp_ms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


class Cursor(Protocol):
    """A cursor of Python's DB-API."""

    def execute(self, statement: str, parameters: Sequence[Value], /) -> object:
        """Run a statement."""
        ...


@dataclass(frozen=True, slots=True)
class Outbox:
    """The outbox of one application, or of one part of it that needs an order of its own.

    ::

        outbox = Outbox(database)
        async with sessions.begin() as session:
            session.add(order)
            await outbox.send(session, "orders", order.json(), key=order.id)

        await client.relay(outbox, transactional_id="orders-outbox")  # in one process, or in all

    A record is sent if and only if the transaction commits that wrote it. Records leave in the
    order in which they were written; those of transactions that ran at the same time, in any.
    """

    database: Database[object]
    name: str = "outbox"

    def __post_init__(self) -> None:
        """Refuse a name that cannot be stored, with InvalidConfigError."""
        check_name("name", self.name, InvalidConfigError)
        check_key(self.database.dialect, "the name of the outbox", self.name)

    async def send(
        self,
        session: object,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        """Write a record in the caller's open transaction.

        ``session`` is a session or connection of the database's layer. Raises TypeError for another
        object, InvalidTopicError, and errors of the driver.
        """
        row = self._row(topic, value, key, partition, headers, timestamp_ms)
        await self.database.joined(session).execute(_INSERT, row)

    def send_by(
        self,
        cursor: Cursor,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        """Write a record by a synchronous cursor, such as Django's ``connection.cursor()``."""
        is_sqlite3 = type(cursor).__module__ == "sqlite3"
        row = self._row(topic, value, key, partition, headers, timestamp_ms)
        cursor.execute(_INSERT if is_sqlite3 else formatted(_INSERT), row)

    def _row(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        headers: Headers,
        timestamp_ms: int | None,
    ) -> tuple[Value, ...]:
        check_topic_names([topic])
        for name, given in (("value", value), ("key", key)):
            if given is not None and not isinstance(given, bytes):
                raise TypeError(f"{name} is {type(given).__name__}, not bytes")
        pairs = encode_headers(headers)
        return (self.name, topic, partition, key, value, pairs, timestamp_ms)


def encode_headers(headers: Headers) -> bytes | None:
    """Return headers as they lie in the table: pairs of a name and a value in base64, as JSON."""
    listed = [
        (name, None if value is None else b64encode(value).decode()) for name, value in headers
    ]
    return json.dumps(listed).encode() if listed else None


def decode_headers(stored: bytes | None) -> list[tuple[str, bytes | None]]:
    """Return the headers that ``encode_headers`` has stored."""
    if stored is None:
        return []
    pairs: list[tuple[str, str | None]] = json.loads(stored)
    return [(name, None if value is None else b64decode(value)) for name, value in pairs]
