"""Every test that asks for `engine` runs on all engines."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from journal_harness import Engine, MemoryEngine, SqliteEngine


@pytest.fixture(params=["sqlite", "memory"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    engine: Engine = SqliteEngine(tmp_path) if request.param == "sqlite" else MemoryEngine()
    yield engine
    await engine.close()
