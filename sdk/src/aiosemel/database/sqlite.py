"""SQLite by the standard library's ``sqlite3``."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiosemel.database.contract import Dialect, Row, Value
from aiosemel.database.threads import run_to_end
from aiosemel.database.turns import Turns


class SqliteDatabase:
    """A SQLite file. Implements ``Database``.

    ::

        database = SqliteDatabase("ledger.db")

    Each transaction has a ``sqlite3.Connection`` of its own, which handlers get; their statements
    run in the event loop's thread. A transaction waits for others of this object; then it begins
    with ``BEGIN IMMEDIATE``, which waits ``timeout_s`` seconds at most for other writers. Raises
    ValueError for a database in memory.
    """

    dialect = Dialect.SQLITE

    def __init__(self, file: str | Path, *, timeout_s: float = 5.0) -> None:
        if str(file) in ("", ":memory:"):
            raise ValueError(
                "each transaction opens the database by its path, so a database in memory would be"
                " lost after each: give a path, or use AiosqliteDatabase with a connection"
            )
        self._file = file
        self._timeout_s = timeout_s
        self._turns = Turns()

    @asynccontextmanager
    async def transaction(self) -> "AsyncIterator[_Sqlite]":
        """Open a transaction; commits at the end of the block, rolls back at an exception.

        It begins and ends in a thread: both may wait for other writers, and for the disk.
        """
        async with self._turns.take():
            connection = sqlite3.connect(
                self._file, timeout=self._timeout_s, isolation_level=None, check_same_thread=False
            )
            try:
                await run_to_end(lambda: connection.execute("BEGIN IMMEDIATE"))
                try:
                    yield _Sqlite(connection)
                    await run_to_end(connection.commit)
                except BaseException:
                    connection.rollback()
                    raise
            finally:
                connection.close()

    def joined(self, session: object) -> "_Sqlite":
        """Return the transaction that is open in a connection."""
        if not isinstance(session, sqlite3.Connection):
            raise TypeError(f"{session!r} is no connection of sqlite3")
        return _Sqlite(session)


class _Sqlite:
    """A transaction of ``sqlite3``. Implements ``DatabaseSession``."""

    def __init__(self, session: sqlite3.Connection) -> None:
        self.session = session

    async def execute(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        return self.session.execute(statement, parameters).rowcount

    async def fetch(self, statement: str, parameters: Sequence[Value] = ()) -> Sequence[Row]:
        # A handler may have given the connection factories of its own.
        cursor, text_factory = self.session.cursor(), self.session.text_factory
        cursor.row_factory, self.session.text_factory = None, str
        try:
            return cursor.execute(statement, parameters).fetchall()
        finally:
            self.session.text_factory = text_factory
