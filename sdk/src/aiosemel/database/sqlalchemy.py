"""Any database that SQLAlchemy 2 reaches asynchronously; SQLModel's sessions, too."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import sqlalchemy
from sqlalchemy import CursorResult, event, text
from sqlalchemy.dialects import mysql
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker
from sqlalchemy.pool import ConnectionPoolEntry

from aiosemel.database.contract import Dialect, Row, Value
from aiosemel.database.given import of_class
from aiosemel.database.placeholders import named
from aiosemel.database.tables import NAME_CHARACTERS, TABLES, Column, Kind
from semel_common.library_log import get_logger

_log = get_logger(__name__)

_DIALECTS = {"mariadb": Dialect.MYSQL} | {each.value: each for each in Dialect}


Session: TypeAlias = AsyncSession | AsyncConnection


class SqlAlchemyDatabase:
    """The database of an ``async_sessionmaker`` or an ``AsyncEngine``. Implements ``Database``.

    ::

        database = SqlAlchemyDatabase(async_sessionmaker(engine))

    Handlers get an ``AsyncSession``, or with an engine an ``AsyncConnection``, in an open
    transaction. Raises ValueError for a dialect that is not known, TypeError for another object.
    """

    def __init__(self, sessions: async_sessionmaker[AsyncSession] | AsyncEngine) -> None:
        self._sessions = of_class(sessions, async_sessionmaker, AsyncEngine)
        bind = sessions.sync_engine if isinstance(sessions, AsyncEngine) else sessions().get_bind()
        self._dialect = Dialect(_DIALECTS.get(bind.dialect.name, bind.dialect.name))
        if self._dialect is Dialect.SQLITE and not event.contains(
            bind.engine, "invalidate", _give_up
        ):
            event.listen(bind.engine, "invalidate", _give_up)

    @property
    def dialect(self) -> Dialect:
        """The SQL of this database."""
        return self._dialect

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_SqlAlchemy"]:
        """Open a transaction; commits at the end of the block, rolls back at an exception."""
        async with self._sessions.begin() as session:
            if self._dialect is Dialect.SQLITE:
                await _begin_immediate(session)
            yield _SqlAlchemy(session)

    def joined(self, session: object) -> "_SqlAlchemy":
        """Return the transaction that is open in a session or connection."""
        if not isinstance(session, (AsyncSession, AsyncConnection)):
            raise TypeError(f"{session!r} is no AsyncSession or AsyncConnection of SQLAlchemy")
        return _SqlAlchemy(session)


async def _begin_immediate(session: Session) -> None:
    """Begin in SQLite: its driver would begin only before the first change."""
    connection = session if isinstance(session, AsyncConnection) else await session.connection()
    raw = (await connection.get_raw_connection()).driver_connection
    if raw is None or not raw.in_transaction:
        await connection.exec_driver_sql("BEGIN IMMEDIATE")


def _give_up(connection: DBAPIConnection, _: ConnectionPoolEntry, __: BaseException | None) -> None:
    """Roll back in SQLite before SQLAlchemy closes a connection whose statement was cancelled.

    A cursor that is still referenced keeps a closed connection open, and with it the lock.
    """
    try:
        connection.rollback()
    except Exception as error:  # noqa: BLE001 - of any driver; the connection is closed next
        _log.debug("a connection that is given up does not roll back: %r", error)


class _SqlAlchemy:
    """A transaction of SQLAlchemy. Implements ``DatabaseSession``."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def execute(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        await self._flush()
        result = await self.session.execute(text(named(statement)), _bound(parameters))
        assert isinstance(result, CursorResult), "a statement of SQL has a cursor"
        return int(result.rowcount)

    async def fetch(self, statement: str, parameters: Sequence[Value] = ()) -> Sequence[Row]:
        await self._flush()
        result = await self.session.execute(text(named(statement)), _bound(parameters))
        return [tuple(row) for row in result.all()]

    async def _flush(self) -> None:
        if isinstance(self.session, AsyncSession):
            await self.session.flush()


def _bound(parameters: Sequence[Value]) -> dict[str, Value]:
    return {f"p{number}": value for number, value in enumerate(parameters)}


def semel_tables(metadata: sqlalchemy.MetaData) -> tuple[sqlalchemy.Table, ...]:
    """Add Semel's tables to the application's ``MetaData``, where Alembic finds them."""
    return tuple(
        sqlalchemy.Table(
            table.name,
            metadata,
            *(_column(column, table.primary_key) for column in table.columns),
            *([sqlalchemy.Index(f"{table.name}_index", *table.index)] if table.index else []),
        )
        for table in TABLES
    )


def _column(column: Column, primary_key: Sequence[str]) -> "sqlalchemy.Column[object]":
    if column.kind is Kind.ROW_ID:
        # SQLite numbers the rows of an INTEGER key only.
        number = sqlalchemy.BigInteger().with_variant(sqlalchemy.Integer(), "sqlite")
        return sqlalchemy.Column(column.name, number, primary_key=True, autoincrement=True)
    return sqlalchemy.Column(
        column.name,
        _type(column.kind),
        primary_key=column.name in primary_key,
        nullable=column.nullable,
        autoincrement=False,
    )


def _type(kind: Kind) -> sqlalchemy.String | sqlalchemy.BigInteger | sqlalchemy.LargeBinary:
    match kind:
        case Kind.NAME:
            name = mysql.VARCHAR(NAME_CHARACTERS, charset="utf8mb4", collation="utf8mb4_bin")
            return sqlalchemy.String(NAME_CHARACTERS).with_variant(name, "mysql", "mariadb")
        case Kind.BYTES:
            return sqlalchemy.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
        case _:
            return sqlalchemy.BigInteger()
