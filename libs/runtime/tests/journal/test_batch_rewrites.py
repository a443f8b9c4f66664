"""Batches removed and replaced where they lie: all of a step or nothing, on every engine."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from random import Random

import aiosqlite
import msgspec
import pytest
from journal_harness import (
    PLENTY,
    Engine,
    MemoryEngine,
    SqliteEngine,
    batch,
    claimed,
    offsets_read,
)
from sqlite_rewriter import BATCHES, ROUNDS_PER_BATCH

from semel_runtime.journal import (
    BatchPosition,
    Journal,
    JournalFencedError,
    JournalUnknownError,
    StoredBatch,
)
from semel_runtime.journal.sqlite import SqliteJournal
from semel_runtime.journal.sqlite.schema import APPLICATION_ID, MIGRATIONS

REWRITER = Path(__file__).parent.parent / "sqlite_rewriter.py"


async def stored(engine: Engine, *batches: StoredBatch) -> Journal:
    """Append batches."""
    journal = await claimed(engine)
    await journal.append(0, [b"record"], batches)
    return journal


async def read(journal: Journal) -> list[StoredBatch]:
    """Read all of partition 1."""
    return list(await journal.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY))


async def test_a_rewrite_removes_and_replaces_and_leaves_the_rest(engine: Engine) -> None:
    journal = await stored(engine, *(batch(1, at) for at in range(0, 50, 10)), batch(2, 10))
    smaller = batch(1, 20, timestamp_ms=77, payload=b"")

    await journal.batches.rewrite(1, removed=[10, 30], replaced=[smaller])

    assert await read(journal) == [batch(1, 0), smaller, batch(1, 40)]
    assert await journal.batches.read(2, 0, max_bytes=PLENTY, upto=PLENTY) == [batch(2, 10)]
    found = await journal.batches.first_at(1, 50, upto=PLENTY)
    assert found == BatchPosition(base_offset=20, max_timestamp_ms=77)


async def test_what_is_gone_is_neither_removed_nor_replaced(engine: Engine) -> None:
    journal = await stored(engine, batch(1, 0), batch(1, 10))
    await journal.batches.delete(1, before=10, rows_max=10, bytes_max=PLENTY)

    await journal.batches.rewrite(1, removed=[0], replaced=[batch(1, 0, payload=b"new")])
    await journal.batches.rewrite(9, removed=[0], replaced=[])

    assert await read(journal) == [batch(1, 10)]


async def test_a_rewrite_is_fenced(engine: Engine) -> None:
    journal = await stored(engine, batch(1, 0), batch(1, 10))
    await claimed(engine, "successor")

    with pytest.raises(JournalFencedError):
        await journal.batches.rewrite(1, removed=[0], replaced=[batch(1, 10, payload=b"new")])

    assert await read(journal) == [batch(1, 0), batch(1, 10)]


async def test_appends_go_on_behind_batches_that_were_removed(engine: Engine) -> None:
    journal = await stored(engine, batch(1, 0), batch(1, 10))

    await journal.batches.rewrite(1, removed=[0, 10], replaced=[])
    await journal.append(1, [b"record"], [batch(1, 20)])

    assert await offsets_read(journal, 0) == [20]


async def test_search_by_time_begins_where_it_is_told(engine: Engine) -> None:
    journal = await stored(engine, *(batch(1, at, timestamp_ms=5) for at in (0, 10, 20)))

    found = await journal.batches.first_at(1, 5, upto=PLENTY, start=1)

    assert found == BatchPosition(base_offset=10, max_timestamp_ms=5)
    assert await journal.batches.first_at(1, 5, upto=20, start=11) is None


@pytest.mark.parametrize("seed", range(3))
async def test_sqlite_rewrites_the_same_as_memory(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    sqlite, memory = SqliteEngine(tmp_path), MemoryEngine()
    journals = [
        await stored(each, *(batch(1, at) for at in range(0, 500, 10))) for each in (sqlite, memory)
    ]

    for number in range(20):
        some = random.sample(range(0, 500, 10), 8)
        removed = some[: random.randrange(8)]
        replaced = [
            batch(1, at, timestamp_ms=number, payload=bytes(random.randrange(99)))
            for at in some[len(removed) :]
        ]
        for journal in journals:
            await journal.batches.rewrite(1, removed=removed, replaced=replaced)
        assert await read(journals[0]) == await read(journals[1])
    await sqlite.close()


async def test_after_kill_9_every_rewrite_happened_as_a_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    for rounds in (1, 30, 90):
        folder = tmp_path / f"killed-after-{rounds}"
        last = await kill_after(folder, rounds)

        async with await SqliteJournal.open(folder, service="test") as journal:
            left = await read(journal)

        (payload,) = {each.payload for each in left}
        number = int(payload)
        assert number in (last, last + 1)
        gone = min(number // ROUNDS_PER_BATCH, BATCHES - 1)
        assert [each.base_offset for each in left] == list(range(gone, BATCHES))


async def kill_after(folder: Path, rounds: int) -> int:
    """Kill a child in the middle of rewrites; answer the last round that it acknowledged."""
    rewriter = await asyncio.create_subprocess_exec(
        sys.executable,
        str(REWRITER),
        str(folder),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REWRITER.parent)},
    )
    assert rewriter.stdout is not None
    for _ in range(rounds):
        await rewriter.stdout.readline()
    rewriter.send_signal(signal.SIGKILL)
    rest, _ = await rewriter.communicate()
    return int(rest.split()[-1]) if rest else rounds


async def test_a_rewrite_that_fails_leaves_nothing_torn(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path)
    journal = await stored(engine, batch(1, 0), batch(1, 10))
    assert isinstance(journal, SqliteJournal)
    pages = await journal._writer.execute("PRAGMA page_count")
    await journal._writer.execute(f"PRAGMA max_page_count = {pages[0][0]}")

    with pytest.raises(JournalUnknownError, match="database or disk is full"):
        await journal.batches.rewrite(
            1, removed=[0], replaced=[batch(1, 10, payload=bytes(500_000))]
        )

    assert await read(await claimed(engine, "successor")) == [batch(1, 0), batch(1, 10)]
    await engine.close()


async def test_a_file_of_the_first_schema_can_be_rewritten(tmp_path: Path) -> None:
    async with aiosqlite.connect(tmp_path / "journal.db") as connection:
        await connection.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; {MIGRATIONS[0]} PRAGMA user_version = 1;"
        )
        await connection.executemany(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)",
            [msgspec.structs.astuple(batch(1, 0)), msgspec.structs.astuple(batch(1, 10))],
        )
        await connection.commit()
    engine = SqliteEngine(tmp_path)

    journal = await claimed(engine, "new release")
    await journal.batches.rewrite(1, removed=[0], replaced=[])

    assert await read(journal) == [batch(1, 10)]
    await engine.close()
