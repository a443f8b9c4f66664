"""Each layer, on a new database of its own, with a table of the application's."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import aiosqlite
import asyncpg
import django
import pymysql
from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import make_url, text
from sqlalchemy.engine.interfaces import IsolationLevel
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)

from aiosemel.database import Database, create_tables
from aiosemel.database.aiosqlite import AiosqliteDatabase
from aiosemel.database.asyncpg import AsyncpgDatabase
from aiosemel.database.django import DjangoDatabase
from aiosemel.database.psycopg import PsycopgDatabase
from aiosemel.database.sqlalchemy import SqlAlchemyDatabase
from aiosemel.database.sqlite import SqliteDatabase
from database.hooked import HookedDatabase

ON_SQLITE = ("sqlite", "aiosqlite", "sqlalchemy-aiosqlite", "django-sqlite")
ON_POSTGRES = ("asyncpg", "psycopg", "sqlalchemy-asyncpg")
ON_MARIADB = ("sqlalchemy-aiomysql", "sqlalchemy-asyncmy")
DJANGO_ON_POSTGRES, DJANGO_ON_MARIADB = "django-postgresql", "django-mariadb"
"""The layers with one transaction at a time, of databases that have many."""
ISOLATION: Mapping[str, IsolationLevel] = {
    "aiomysql": "REPEATABLE READ",
    "asyncmy": "READ COMMITTED",
}
"""Of transactions with each driver of MariaDB: one has its default, the other a lower one."""
KEPT: dict[str, object] = {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}
"""The settings of a Django whose connection stays open, and is tried before each transaction."""
_numbers = count(1)
Url: TypeAlias = Callable[[], str]
"""Starts the server of a layer, and returns where it is."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer with its database. The table ``payment`` has a unique text and a number."""

    name: str
    database: Database[object]

    async def pay(self, session: object, order: str, amount: int) -> None:
        """Write a payment in the user's own session, as a handler does."""
        await self.run_in(session, f"INSERT INTO payment VALUES ('{order}', {amount})")  # noqa: S608 - of this test

    async def run_in(self, session: object, statement: str) -> None:
        """Run a statement in the user's own session, as a handler does."""
        database = self.database
        if isinstance(database, HookedDatabase):
            database = database.inner
        if isinstance(database, DjangoDatabase):
            await database.handler(_run_by_cursor)(session, statement)
        elif isinstance(session, (AsyncSession, AsyncConnection)):
            await session.execute(text(statement))
        else:
            await self.database.joined(session).execute(statement)

    async def payments(self) -> dict[str, int]:
        """Return the payments that are committed."""
        async with self.database.transaction() as transaction:
            rows = await transaction.fetch("SELECT order_id, amount FROM payment")
        return {str(order): int(str(amount)) for order, amount in rows}

    async def query(self, statement: str) -> Sequence[Sequence[Any]]:
        """Run a query in a transaction of its own."""
        async with self.database.transaction() as transaction:
            return await transaction.fetch(statement)

    async def run(self, statement: str) -> None:
        """Run a statement in a transaction of its own."""
        async with self.database.transaction() as transaction:
            await transaction.execute(statement)


def _run_by_cursor(session: BaseDatabaseWrapper, statement: str) -> None:
    with session.cursor() as cursor:
        cursor.execute(statement)


@asynccontextmanager
async def layer_named(name: str, folder: Path, server_url: Url) -> AsyncIterator[Layer]:
    """Make a layer with a new database, which has the tables."""
    async with _database(name, folder, server_url) as database:
        await create_tables(database)
        async with database.transaction() as transaction:
            await transaction.execute(
                "CREATE TABLE payment (order_id VARCHAR(40) PRIMARY KEY, amount BIGINT NOT NULL)"
            )
        yield Layer(name, database)


@asynccontextmanager
async def _database(name: str, folder: Path, server_url: Url) -> AsyncIterator[Database[object]]:
    file = folder / "application.db"
    match name:
        case "sqlite":
            yield SqliteDatabase(file)
        case "aiosqlite":
            async with aiosqlite.connect(file) as connection:
                yield AiosqliteDatabase(connection)
        case "sqlalchemy-aiosqlite":
            async with _engine(f"sqlite+aiosqlite:///{file}") as database:
                yield database
        case "django-sqlite":
            async with _django({"ENGINE": "sqlite3", "NAME": str(file)}) as database:
                yield database
        case "django-postgresql" | "django-mariadb":
            async with _django(await _new_for_django(name, server_url())) as database:
                yield database
        case "asyncpg":
            url = await _new_postgres(server_url())
            async with asyncpg.create_pool(url, min_size=1, max_size=4) as pool:
                yield AsyncpgDatabase(pool)
        case "psycopg":
            url = await _new_postgres(server_url())
            async with AsyncConnectionPool(url, min_size=1, max_size=4, open=False) as psycopg_pool:
                yield PsycopgDatabase(psycopg_pool)
        case "sqlalchemy-asyncpg":
            url = await _new_postgres(server_url())
            async with _engine(url.replace("postgresql://", "postgresql+asyncpg://")) as database:
                yield database
        case "sqlalchemy-aiomysql" | "sqlalchemy-asyncmy":
            driver = name.rpartition("-")[2]
            url = await _new_mariadb(server_url(), driver=driver)
            async with _engine(url, ISOLATION[driver]) as database:
                yield database
        case _:
            raise ValueError(name)


@asynccontextmanager
async def _engine(
    url: str, isolation: IsolationLevel | None = None
) -> AsyncIterator[SqlAlchemyDatabase]:
    options = {} if isolation is None else {"isolation_level": isolation}
    engine = create_async_engine(url, pool_pre_ping=True, **options)
    try:
        yield SqlAlchemyDatabase(async_sessionmaker(engine))
    finally:
        await engine.dispose()


async def _new_postgres(url: str) -> str:
    """Create a database beside the one of a URL; returns its URL."""
    name = f"application_{next(_numbers)}"
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return url.rpartition("/")[0] + f"/{name}"


async def _new_mariadb(url: str, *, driver: str) -> str:
    """Create a database in a server; returns its URL for SQLAlchemy."""
    url = url.replace("mysql://", f"mysql+{driver}://")
    name = f"application_{next(_numbers)}"
    server = create_async_engine(url)
    try:
        async with server.begin() as connection:
            await connection.execute(text(f"CREATE DATABASE {name}"))
    finally:
        await server.dispose()
    return url.rpartition("/")[0] + f"/{name}"


def _close(alias: str) -> None:
    connections[alias].close()


async def _new_for_django(name: str, url: str) -> dict[str, object]:
    """Create a database in a server; returns it as Django's settings have it."""
    if name == DJANGO_ON_POSTGRES:
        return KEPT | _of_django(await _new_postgres(url), "postgresql")
    pymysql.install_as_MySQLdb()  # Django's backend imports the driver by that name.
    return KEPT | _of_django(await _new_mariadb(url, driver="aiomysql"), "mysql")


def _of_django(url: str, engine: str) -> dict[str, object]:
    parts = make_url(url)
    return {
        "ENGINE": engine,
        "NAME": parts.database,
        "USER": parts.username,
        "PASSWORD": parts.password,
        "HOST": parts.host,
        "PORT": parts.port,
    }


@asynccontextmanager
async def _django(options: dict[str, object]) -> AsyncIterator[DjangoDatabase]:
    if not settings.configured:
        settings.configure(DATABASES={})
        django.setup()
    alias = f"application-{next(_numbers)}"
    options["ENGINE"] = f"django.db.backends.{options['ENGINE']}"
    connections.settings |= connections.configure_settings({"default": options, alias: options})
    database = DjangoDatabase(alias)
    try:
        yield database
    finally:
        await database.handler(_close)(alias)
