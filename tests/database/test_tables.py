"""Semel's tables: the SQL of migrations, and SQLAlchemy's own, make the same ones."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from aiosemel.database import Dialect, tables_sql
from aiosemel.database.__main__ import main
from aiosemel.database.sqlalchemy import semel_tables
from aiosemel.database.tables import TABLES
from database.conftest import MARIADB, POSTGRES, server_url
from database.layers import Layer, layer_named

NAMES = [table.name for table in TABLES]


@pytest_asyncio.fixture(
    params=[
        "sqlalchemy-aiosqlite",
        pytest.param("sqlalchemy-asyncpg", marks=POSTGRES),
        pytest.param("sqlalchemy-asyncmy", marks=MARIADB),
    ],
    loop_scope="session",
)
async def layer(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Layer]:
    """Each kind of database, by SQLAlchemy, which can describe its tables."""
    async with layer_named(
        request.param, tmp_path, lambda: server_url(request.param, request)
    ) as layer:
        yield layer


def description(connection: sqlalchemy.Connection) -> dict[str, object]:
    """Describe the tables as Alembic compares them."""
    inspector = sqlalchemy.inspect(connection)
    return {
        name: (
            [
                (column["name"], column["type"].compile(connection.dialect), column["nullable"])
                for column in inspector.get_columns(name)
            ],
            inspector.get_pk_constraint(name)["constrained_columns"],
            [(index["name"], index["column_names"]) for index in inspector.get_indexes(name)],
        )
        for name in NAMES
    }


async def described(layer: Layer) -> dict[str, object]:
    async with layer.database.transaction() as transaction:
        return await (await connection_of(transaction.session)).run_sync(description)


async def connection_of(session: object) -> AsyncConnection:
    assert isinstance(session, AsyncSession)
    return await session.connection()


@pytest.mark.asyncio(loop_scope="session")
async def test_alembic_finds_no_difference_to_the_sql(layer: Layer) -> None:
    by_sql = await described(layer)
    for name in NAMES:
        await layer.run(f"DROP TABLE {name}")
    metadata = sqlalchemy.MetaData()
    assert [table.name for table in semel_tables(metadata)] == NAMES
    async with layer.database.transaction() as transaction:
        await (await connection_of(transaction.session)).run_sync(metadata.create_all)
    assert await described(layer) == by_sql


@pytest.mark.parametrize("dialect", Dialect)
def test_the_command_prints_the_sql(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["aiosemel.database", "sql", "--dialect", dialect])
    main()
    assert capsys.readouterr().out == tables_sql(dialect)
    assert tables_sql(dialect).count("CREATE TABLE IF NOT EXISTS") == len(TABLES)
