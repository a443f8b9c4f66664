"""What SQLite's engine survives: killed processes, failing writes, damaged rows and files."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiosqlite
import pytest
from journal_harness import PLENTY, SqliteEngine, batch, claimed, entries_of, pieces_of, read_all
from journal_processes import kill_after, start_appender

from semel_runtime.journal import (
    Journal,
    JournalCorruptError,
    JournalError,
    JournalInUseError,
    JournalUnknownError,
)
from semel_runtime.journal.sqlite import SqliteJournal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def engine(folder: Path) -> AsyncIterator[SqliteEngine]:
    engine = SqliteEngine(folder)
    yield engine
    await engine.close()


async def sql(folder: Path, statement: str) -> None:
    """Change the file behind the engine's back."""
    async with aiosqlite.connect(folder / "journal.db", isolation_level=None) as connection:
        await connection.execute(statement)


# -- kill -9 ---------------------------------------------------------------------------------------


async def test_everything_acknowledged_is_there_after_kill_9(folder: Path) -> None:
    for count in (1, 20, 200):
        last = await kill_after(await start_appender(folder), count)

        async with await SqliteJournal.open(folder, service="test") as journal:
            claim = await journal.claim(f"after {count}")
            records = await read_all(journal)
            batches = await journal.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY)

        assert claim.next_offset > last
        assert records == [b"%d" % at for at in range(claim.next_offset)]
        assert [one.payload for one in batches] == records


async def test_folder_is_held_by_a_living_process_and_free_after_its_death(folder: Path) -> None:
    appender = await start_appender(folder)
    assert appender.stdout is not None
    await appender.stdout.readline()

    with pytest.raises(JournalInUseError, match=r"in use by another process\. Stop that process"):
        await SqliteJournal.open(folder, service="test")
    await kill_after(appender, 1)

    await (await SqliteJournal.open(folder, service="test")).close()


# -- failing writes --------------------------------------------------------------------------------


async def test_failed_commit_kills_the_handle_and_leaves_nothing_torn(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await journal.append(0, [b"zero"], [batch(1, 0)])
    await fill_the_disk(journal)

    with pytest.raises(JournalUnknownError, match="database or disk is full"):
        await journal.append(1, [bytes(500_000)], [batch(1, 10)])
    with pytest.raises(JournalUnknownError, match="the handle is dead"):
        await journal.append(1, [b"one"])
    with pytest.raises(JournalUnknownError, match="the handle is dead"):
        await journal.claim("again")

    successor = await claimed(engine, "successor")
    assert await read_all(successor) == [b"zero"]
    batches = await successor.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY)
    assert [one.base_offset for one in batches] == [0]


async def test_snapshot_that_finds_the_disk_full_kills_the_handle(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await journal.append(0, [b"zero"])
    await fill_the_disk(journal)

    with pytest.raises(JournalUnknownError, match="database or disk is full"):
        await journal.replace(1, pieces_of([(0, b"a")], [(0, bytes(500_000))]))

    successor = await engine.open()
    assert not (await successor.claim("successor")).has_snapshot
    assert await read_all(successor) == [b"zero"]


async def fill_the_disk(journal: Journal) -> None:
    """Let the file grow no further."""
    assert isinstance(journal, SqliteJournal)
    # SQLite raises it to the number of used pages.
    await journal._writer.execute("PRAGMA max_page_count = 1")


async def test_write_that_finds_the_file_locked_kills_the_handle(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    await journal._writer.execute("PRAGMA busy_timeout = 0")  # type: ignore[attr-defined]  # the engine's own
    async with aiosqlite.connect(engine.folder / "journal.db", isolation_level=None) as other:
        await other.execute("BEGIN IMMEDIATE")

        with pytest.raises(JournalUnknownError, match="database is locked"):
            await journal.append(0, [bytes(300_000)])


async def test_overlapping_batches_are_never_stored(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await journal.append(0, [b"zero"], [batch(1, 0)])

    with pytest.raises(JournalUnknownError, match="misplaced"):
        await journal.append(1, [b"one"], [batch(1, 9)])

    assert await read_all(await claimed(engine, "successor")) == [b"zero"]


# -- damage ----------------------------------------------------------------------------------------


async def fill_with_snapshot(engine: SqliteEngine) -> None:
    """Make a journal: a snapshot in two pieces below offset 2, chunks at 2, 3 and 5."""
    journal = await claimed(engine)
    await journal.append(0, [b"zero", b"one"])
    await journal.replace(2, pieces_of([(0, b"zero")], [(1, b"one")]))
    await journal.append(2, [b"two"])
    await journal.append(3, [b"three", b"four"])
    await journal.append(5, [b"five"])
    assert len(await read_all(journal, 2)) == 4  # So the tables have all, too.


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            "UPDATE chunks SET data = x'0a0574687265650a04464f5552' WHERE base_offset = 3",
            "records 3 to 4 are damaged: the CRC-32C differs",
        ),
        ("UPDATE chunks SET crc32c = 0 WHERE base_offset = 3", "records 3 to 4 are damaged"),
        ("UPDATE chunks SET record_count = 1 WHERE base_offset = 3", "records 3 to 3 are damaged"),
        ("DELETE FROM chunks WHERE base_offset = 3", "records from 3 on are missing; the end is 6"),
        ("DELETE FROM chunks WHERE base_offset = 2", "records from 2 on are missing; the end is 6"),
        (
            "UPDATE chunks SET base_offset = 4 WHERE base_offset = 3",
            "records from 3 on are missing",
        ),
    ],
)
async def test_damaged_records_are_named_and_not_served(
    engine: SqliteEngine, damage: str, message: str
) -> None:
    await fill_with_snapshot(engine)
    await sql(engine.folder, damage)
    journal = await claimed(engine, "reader")

    with pytest.raises(JournalCorruptError, match=message):
        await read_all(journal, 2, max_bytes=1)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            "UPDATE snapshot_pieces SET crc32c = 1 WHERE number = 1",
            "piece 1 of snapshot 1 is damaged",
        ),
        ("DELETE FROM snapshot_pieces WHERE number = 1", "piece 1 of snapshot 1 is missing"),
    ],
)
async def test_damaged_snapshot_is_named_and_not_served(
    engine: SqliteEngine, damage: str, message: str
) -> None:
    """C-162."""
    await fill_with_snapshot(engine)
    await sql(engine.folder, damage)
    journal = await claimed(engine, "reader")

    with pytest.raises(JournalCorruptError, match=message):
        await entries_of(journal.read_snapshot())


async def test_damaged_pages_are_an_error_and_not_served(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    for at in range(200):
        await journal.append(at, [bytes(4000)])
    await engine.close()
    file = engine.folder / "journal.db"
    content = bytearray(file.read_bytes())
    content[10 * 4096 :] = bytes(len(content) - 10 * 4096)
    file.write_bytes(content)

    with pytest.raises(JournalError):  # where it is found is SQLite's choice
        await read_all(await claimed(engine, "reader"))
