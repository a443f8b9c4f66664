"""Every test that asks for `engine` runs on all engines."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
from journal_harness import Admin, Engine, MemoryEngine, PostgresEngine, SqliteEngine
from payloads_harness import BLOCK, SIZE

from semel_runtime.testing.postgres import PostgresCluster


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    """A primary and two synchronous standbys, which no test may stop."""
    with PostgresCluster() as cluster:
        yield cluster


@pytest.fixture
async def admin(postgres: PostgresCluster) -> AsyncIterator[Admin]:
    """A connection of an operator's to the primary."""
    connection = await asyncpg.connect(postgres.primary.url())
    yield connection
    await connection.close()


# The first that needs the servers makes them, which takes long on a machine that is busy.
ON_POSTGRES = pytest.param("postgres", marks=pytest.mark.timeout(180))


@pytest.fixture(params=["sqlite", "memory", ON_POSTGRES])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    engine: Engine
    match request.param:
        case "sqlite":
            engine = SqliteEngine(tmp_path)
        case "memory":
            engine = MemoryEngine()
        case _:
            engine = PostgresEngine(request.getfixturevalue("postgres").primary)
    yield engine
    await engine.close()


@pytest.fixture
async def small_files(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    """Yield an engine whose files take two payloads each."""
    engine = SqliteEngine(tmp_path / "small", payload_file_bytes=2 * SIZE + BLOCK)
    yield engine
    await engine.close()
