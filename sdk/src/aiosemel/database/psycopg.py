"""PostgreSQL by psycopg 3."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import psycopg
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool

from aiosemel.database.contract import Dialect, Row, Value
from aiosemel.database.given import of_class
from aiosemel.database.placeholders import formatted

Connection: TypeAlias = psycopg.AsyncConnection[tuple[object, ...]]


class PsycopgDatabase:
    """A PostgreSQL behind a ``psycopg_pool.AsyncConnectionPool``. Implements ``Database``.

    ::

        async with AsyncConnectionPool("postgresql://…") as pool:
            database = PsycopgDatabase(pool)

    Handlers get a ``psycopg.AsyncConnection`` in an open transaction, with the pool's options, such
    as a ``row_factory``. Raises TypeError for another object than a pool.
    """

    dialect = Dialect.POSTGRESQL

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = of_class(pool, AsyncConnectionPool)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_Psycopg"]:
        """Open a transaction; commits at the end of the block, rolls back at an exception."""
        async with self._pool.connection() as connection, connection.transaction():
            yield _Psycopg(connection)

    def joined(self, session: object) -> "_Psycopg":
        """Return the transaction that is open in a connection."""
        if not isinstance(session, psycopg.AsyncConnection):
            raise TypeError(f"{session!r} is no asynchronous connection of psycopg")
        return _Psycopg(session)


class _Psycopg:
    """A transaction of psycopg. Implements ``DatabaseSession``."""

    def __init__(self, session: Connection) -> None:
        self.session = session

    async def execute(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        async with self._cursor() as cursor:
            await cursor.execute(formatted(statement).encode(), parameters)
            return cursor.rowcount

    async def fetch(self, statement: str, parameters: Sequence[Value] = ()) -> Sequence[Row]:
        async with self._cursor() as cursor:
            await cursor.execute(formatted(statement).encode(), parameters)
            return await cursor.fetchall()

    def _cursor(self) -> psycopg.AsyncCursor[tuple[object, ...]]:
        """Make a cursor whose rows and placeholders do not depend on the pool's options."""
        return psycopg.AsyncCursor(self.session, row_factory=tuple_row)
