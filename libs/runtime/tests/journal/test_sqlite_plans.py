"""How SQLite runs the queries that read data: a sort would carry the data along, through a file."""

import sqlite3
from pathlib import Path

import pytest
from journal_harness import SqliteEngine, claimed

from semel_runtime.journal.sqlite import batches, journal


@pytest.mark.parametrize(
    ("query", "parameters"), [(batches._READ, (1, 0, 9, 4_096, 400)), (journal._READ, (0, 4_096))]
)
async def test_no_data_is_sorted(query: str, parameters: tuple[int, ...], tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path)
    await claimed(engine)
    connection = sqlite3.connect(tmp_path / "journal.db")
    plan = connection.execute(f"EXPLAIN QUERY PLAN {query}", parameters).fetchall()
    connection.close()
    await engine.close()
    assert not [step for *_, step in plan if "ORDER BY" in step]
