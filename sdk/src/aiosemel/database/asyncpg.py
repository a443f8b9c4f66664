"""PostgreSQL by asyncpg."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from aiosemel.database.contract import Dialect, Row, Value
from aiosemel.database.given import of_class
from aiosemel.database.placeholders import numbered

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"


class AsyncpgDatabase:
    """A PostgreSQL behind an ``asyncpg.Pool``. Implements ``Database``.

    ::

        database = AsyncpgDatabase(await asyncpg.create_pool("postgresql://…"))

    Handlers get an ``asyncpg.Connection`` in an open transaction. Behind PgBouncer, make the pool
    with ``statement_cache_size=0``. ``isolation`` is that of each transaction; None: the server's.
    Raises TypeError for another object than a pool.
    """

    dialect = Dialect.POSTGRESQL

    def __init__(
        self, pool: "asyncpg.Pool[asyncpg.Record]", *, isolation: str | None = None
    ) -> None:
        self._pool = of_class(pool, asyncpg.Pool)
        self._isolation = isolation

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_Asyncpg"]:
        """Open a transaction; commits at the end of the block, rolls back at an exception."""
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation=self._isolation),  # type: ignore[arg-type]  # any name of a level
        ):
            yield _Asyncpg(connection)

    def joined(self, session: object) -> "_Asyncpg":
        """Return the transaction that is open in a connection."""
        if not isinstance(session, (asyncpg.Connection, PoolConnectionProxy)):
            raise TypeError(f"{session!r} is no connection of asyncpg")
        return _Asyncpg(session)


class _Asyncpg:
    """A transaction of asyncpg. Implements ``DatabaseSession``."""

    def __init__(self, session: Connection) -> None:
        self.session = session

    async def execute(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        status = await self.session.execute(numbered(statement), *parameters)
        rows = status.rpartition(" ")[2]  # such as "UPDATE 1"
        return int(rows) if rows.isdecimal() else 0

    async def fetch(self, statement: str, parameters: Sequence[Value] = ()) -> Sequence[Row]:
        rows = await self.session.fetch(numbered(statement), *parameters)
        return [tuple(row) for row in rows]
