"""SQLite by ``aiosqlite``."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiosqlite

from aiosemel.database.contract import Dialect, Row, Value
from aiosemel.database.given import of_class
from aiosemel.database.turns import Turns
from aiosemel.errors import IllegalStateError


class AiosqliteDatabase:
    """An open ``aiosqlite.Connection``. Implements ``Database``.

    ::

        async with aiosqlite.connect("ledger.db") as connection:
            database = AiosqliteDatabase(connection)

    Handlers get the connection, and one transaction waits for another. A transaction begins with
    ``BEGIN IMMEDIATE``. Nothing else may use the connection: a statement of another task would
    become a part of the transaction that is open. Raises TypeError for another object.
    """

    dialect = Dialect.SQLITE

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = of_class(connection, aiosqlite.Connection)
        self._turns = Turns()

    @asynccontextmanager
    async def transaction(self) -> "AsyncIterator[_Aiosqlite]":
        """Open a transaction; commits at the end of the block, rolls back at an exception."""
        async with self._turns.take():
            await self._begin()
            try:
                yield _Aiosqlite(self._connection)
                await self._connection.commit()
            except BaseException:
                await self._connection.rollback()
                raise

    async def _begin(self) -> None:
        """Begin. A transaction that the application has open in the connection stays."""
        if self._connection.in_transaction:
            raise IllegalStateError(
                "another part of the program has a transaction open in this connection of"
                " aiosqlite: give AiosqliteDatabase a connection of its own"
            )
        try:
            await self._connection.execute("BEGIN IMMEDIATE")
        except asyncio.CancelledError:
            # The statement still takes effect: the driver's thread has it.
            await self._connection.rollback()
            raise

    def joined(self, session: object) -> "_Aiosqlite":
        """Return the transaction that is open in a connection."""
        if not isinstance(session, aiosqlite.Connection):
            raise TypeError(f"{session!r} is no connection of aiosqlite")
        return _Aiosqlite(session)


class _Aiosqlite:
    """A transaction of ``aiosqlite``. Implements ``DatabaseSession``."""

    def __init__(self, session: aiosqlite.Connection) -> None:
        self.session = session

    async def execute(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        async with self.session.execute(statement, parameters) as cursor:
            return cursor.rowcount

    async def fetch(self, statement: str, parameters: Sequence[Value] = ()) -> Sequence[Row]:
        # The connection may have factories of the application's own.
        text_factory = self.session.text_factory
        self.session.text_factory = str
        try:
            async with self.session.cursor() as cursor:
                cursor.row_factory = None
                await cursor.execute(statement, parameters)
                return [tuple(row) for row in await cursor.fetchall()]
        finally:
            self.session.text_factory = text_factory
