"""Pools, connections and handlers that an application gives to a layer."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.ext.asyncio import create_async_engine

from aiosemel import SemelClient
from aiosemel._database.open_session import OpenSession
from aiosemel._database.table_check import check_tables
from aiosemel.database import Database, create_tables
from aiosemel.database.aiosqlite import AiosqliteDatabase
from aiosemel.database.asyncpg import AsyncpgDatabase
from aiosemel.database.django import DjangoDatabase
from aiosemel.database.psycopg import PsycopgDatabase
from aiosemel.database.sqlalchemy import SqlAlchemyDatabase
from aiosemel.database.sqlite import SqliteDatabase
from aiosemel.database.tables import POSITION, TABLES
from aiosemel.errors import IllegalStateError, InvalidConfigError
from database.conftest import MARIADB
from database.layers import Layer, layer_named
from database.ledger import Ledger, Records
from database.running import running, until
from semel_runtime.testing.mariadb import MariadbServer
from semel_runtime.testing.postgres import PostgresCluster

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

WRITE = "INSERT INTO semel_transaction (name, outcome, decided_at_ms) VALUES (?, ?, ?)"
READ = "SELECT name, decided_at_ms FROM semel_transaction"


async def check_rows(database: Database[object]) -> None:
    """Rows are sequences of the columns' own values."""
    await check_tables(database, TABLES)
    async with database.transaction() as transaction:
        assert await transaction.execute(WRITE, ("100 %", "committed", 7)) == 1
        assert [tuple(row) for row in await transaction.fetch(READ)] == [("100 %", 7)]
    async with database.transaction() as transaction:
        assert await transaction.execute("DELETE FROM semel_transaction") == 1


@pytest.mark.postgres
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "options",
    [
        {"row_factory": dict_row},
        {"cursor_factory": psycopg.AsyncRawCursor},
        {"cursor_factory": psycopg.AsyncClientCursor, "autocommit": True},
    ],
)
async def test_a_pool_of_psycopg_may_have_cursors_and_rows_of_its_own(
    postgres: PostgresCluster, options: Mapping[str, object]
) -> None:
    url = postgres.primary.url()
    async with AsyncConnectionPool(url, kwargs={**options}, min_size=1, open=False) as pool:
        database = PsycopgDatabase(pool)
        await create_tables(database)
        await check_rows(database)


def as_dictionary(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> dict[str, object]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


async def test_connections_to_sqlite_may_have_factories_of_their_own(tmp_path: Path) -> None:
    async with aiosqlite.connect(tmp_path / "application.db") as connection:
        connection.row_factory = as_dictionary  # type: ignore[assignment]  # takes any function
        connection.text_factory = bytes
        database = AiosqliteDatabase(connection)
        await create_tables(database)
        await check_rows(database)
        assert connection.text_factory is bytes
    async with SqliteDatabase(tmp_path / "application.db").transaction() as transaction:
        transaction.session.row_factory = as_dictionary
        transaction.session.text_factory = bytes
        await transaction.execute(WRITE, ("a", "committed", 7))
        assert await transaction.fetch(READ) == [("a", 7)]
        assert transaction.session.text_factory is bytes


def made_of_a_string(layer: Callable[..., object]) -> None:
    layer("postgresql://app@db.example.com/shop")


@pytest.mark.parametrize(
    "layer", [AsyncpgDatabase, PsycopgDatabase, AiosqliteDatabase, SqlAlchemyDatabase]
)
async def test_a_layer_refuses_another_object(layer: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match=r"must be made of \w+.*, not str"):
        made_of_a_string(layer)


@pytest.mark.parametrize("file", ["", ":memory:"])
async def test_a_path_in_memory_is_refused(file: str) -> None:
    with pytest.raises(ValueError, match="in memory would be lost"):
        SqliteDatabase(file)


@asynccontextmanager
async def autocommit(url: str) -> AsyncIterator[SqlAlchemyDatabase]:
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    try:
        yield SqlAlchemyDatabase(engine)
    finally:
        await engine.dispose()


async def refuses_autocommit(url: str) -> None:
    async with autocommit(url) as database:
        await create_tables(database)
        with pytest.raises(InvalidConfigError, match=r"themselves \(autocommit\)"):
            await check_tables(database, [POSITION])


@pytest.mark.postgres
@pytest.mark.timeout(180)
async def test_postgresql_without_transactions_is_refused(postgres: PostgresCluster) -> None:
    url = postgres.primary.url().replace("postgresql://", "postgresql+asyncpg://")
    await refuses_autocommit(url)


@pytest.mark.postgres
@pytest.mark.timeout(180)
async def test_a_pool_that_is_not_open_is_named(postgres: PostgresCluster) -> None:
    database = PsycopgDatabase(AsyncConnectionPool(postgres.primary.url(), open=False))
    with pytest.raises(InvalidConfigError, match=r"is not open yet.*The pool must be open"):
        await check_tables(database, [POSITION])


@pytest.mark.parametrize("driver", [pytest.param("asyncmy", marks=MARIADB)])
async def test_mariadb_without_transactions_is_refused(mariadb: MariadbServer, driver: str) -> None:
    url = mariadb.url("mysql").replace("mysql://", f"mysql+{driver}://")
    await refuses_autocommit(url)


@pytest.mark.parametrize("name", ["sqlite", "aiosqlite", "django-sqlite"])
async def test_a_transaction_inside_another_one_is_refused(name: str, tmp_path: Path) -> None:
    async with layer_named(name, tmp_path, str) as layer:
        async with layer.database.transaction():
            with pytest.raises(IllegalStateError, match="use the session of the first one"):
                await layer.payments()
        assert await layer.payments() == {}


async def test_a_transaction_that_the_application_opened_itself_stays(
    tmp_path: Path,
) -> None:
    async with aiosqlite.connect(tmp_path / "application.db") as connection:
        database = AiosqliteDatabase(connection)
        await create_tables(database)
        await connection.execute(WRITE, ("a", "committed", 7))
        with pytest.raises(IllegalStateError, match="a connection of its own"):
            await check_rows(database)
        await connection.commit()
        async with database.transaction() as transaction:
            assert await transaction.fetch(READ) == [("a", 7)]


async def a_handler(*_: object) -> None:
    """Take records."""


async def test_a_coroutine_function_is_a_handler_of_django_already(tmp_path: Path) -> None:
    async with layer_named("django-sqlite", tmp_path, str) as layer:
        assert isinstance(layer.database, DjangoDatabase)
        with pytest.raises(TypeError, match="a_handler is a coroutine function"):
            layer.database.handler(a_handler)


def pay(alias: str) -> None:
    """Write as the ORM does: by the connection of the thread."""
    with connections[alias].cursor() as cursor:
        cursor.execute("INSERT INTO payment VALUES ('order-0', 0)")


async def test_asynchronous_calls_of_django_use_the_open_transaction(
    tmp_path: Path, client: SemelClient, topic: str, name: str
) -> None:
    failures = [ZeroDivisionError(), ZeroDivisionError()]

    async def book(_: Records, session: object) -> None:
        assert isinstance(session, BaseDatabaseWrapper)
        await sync_to_async(pay)(session.alias)
        if failures:
            raise failures.pop()

    async with layer_named("django-sqlite", tmp_path, str) as layer:
        ledger = Ledger(layer, client, topic, name)
        await ledger.send(0)
        store = ledger.database.store(
            source=[topic], group=name, handler=book, handle_signals=False
        )
        async with running(store) as task:
            await until(lambda: ledger.has(0), task)
    assert failures == []


async def test_a_savepoint_of_the_handler_is_its_own(sqlite: Layer) -> None:
    opened = await OpenSession.begin(sqlite.database)
    await opened.statements.execute("SAVEPOINT record")
    await sqlite.pay(opened.statements.session, "a", 1)
    await opened.statements.execute("ROLLBACK TO SAVEPOINT record")
    await opened.check()
    await opened.commit()
    assert await asyncio.wait_for(sqlite.payments(), 10) == {}
