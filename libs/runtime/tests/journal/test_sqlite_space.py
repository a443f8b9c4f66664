"""Room on the disk: the reserve, the write-ahead log, and space that is given back."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import aiosqlite
import pytest
from journal_harness import (
    PLENTY,
    WAL_BYTES,
    SqliteEngine,
    batch,
    claimed,
    pieces_of,
    read_all,
)

from semel_runtime.journal import Journal, JournalFencedError, JournalUnknownError
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.journal.sqlite.connections import Writer
from semel_runtime.journal.sqlite.opening import PAGE_BYTES
from semel_runtime.journal.sqlite.schema import APPLICATION_ID
from semel_runtime.journal.sqlite.space import DiskSpace, statvfs_free_bytes
from semel_runtime.journal.sqlite.vacuum import Vacuum

LOG_BYTES_MAX = 2 * WAL_BYTES
SYNCED = 2
"""What SQLite calls FULL: every write is on disk when it returns."""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path)
    yield engine
    await engine.close()


def writer_of(journal: object) -> Writer:
    assert isinstance(journal, SqliteJournal)
    return journal._writer


async def pragma(journal: object, name: str) -> int | str:
    value: int | str = (await writer_of(journal).execute(f"PRAGMA {name}"))[0][0]
    return value


def size_of(engine: SqliteEngine, name: str = "journal.db") -> int:
    return (engine.folder / name).stat().st_size


async def test_writes_are_synced_in_full(engine: SqliteEngine) -> None:
    journal = await engine.open()

    assert await pragma(journal, "journal_mode") == "wal"
    assert await pragma(journal, "synchronous") == SYNCED


async def test_file_with_smaller_pages_keeps_them_and_a_log_of_as_many_bytes(
    engine: SqliteEngine,
) -> None:
    """As releases before this one made it."""
    engine.folder.mkdir(exist_ok=True)
    async with aiosqlite.connect(engine.folder / "journal.db", isolation_level=None) as older:
        for sentence in ("page_size = 4096", f"application_id = {APPLICATION_ID}"):
            await older.execute_fetchall(f"PRAGMA {sentence}")

    journal = await claimed(engine)

    assert await pragma(journal, "page_size") == 4096 < PAGE_BYTES
    assert await pragma(journal, "wal_autocheckpoint") == WAL_BYTES // 4096
    assert await pragma(journal, "journal_size_limit") == WAL_BYTES


async def test_free_bytes_are_those_of_the_file_system(tmp_path: Path) -> None:
    free_bytes = DiskSpace(tmp_path).free_bytes()

    assert free_bytes > 0
    assert statvfs_free_bytes(tmp_path) > 0


@pytest.mark.parametrize(("reserve", "room"), [(0, True), (1 << 60, False)])
async def test_room_is_what_is_free_above_the_reserve(
    tmp_path: Path, reserve: int, room: bool
) -> None:
    options = SqliteOptions(disk_reserve_bytes=reserve)

    async with await SqliteJournal.open(tmp_path, service="test", options=options) as journal:
        shortage = journal.shortage()
        assert (shortage is None) is room
        assert shortage is None or shortage.folder == str(tmp_path)


async def test_write_ahead_log_is_emptied_once_the_reader_that_held_it_up_has_ended(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    await journal.append(0, [b"record"])
    # As if readers were always busy: then SQLite's own checkpoints never restart the log.
    await pragma(journal, "wal_autocheckpoint = 0")

    async with aiosqlite.connect(engine.folder / "journal.db", isolation_level=None) as reader:
        await reader.execute("BEGIN")
        await reader.execute_fetchall("SELECT * FROM chunks")
        held = await log_sizes(engine, journal, start=1, count=30)
        next_try_at_bytes = writer_of(journal)._empty_log_at_bytes
    freed = await log_sizes(engine, journal, start=31, count=60)

    assert held[-1] > LOG_BYTES_MAX  # Appends went on: a reader holds them up only for a moment,
    assert next_try_at_bytes > held[-1]  # and not at every append.
    assert max(freed) < 2 * LOG_BYTES_MAX + 1_000_000
    assert min(freed) < 1_000_000


async def log_sizes(engine: SqliteEngine, journal: Journal, *, start: int, count: int) -> list[int]:
    """Append records too large for the log in front; answer how long SQLite's was after each."""
    sizes = []
    for at in range(start, start + count):
        await journal.append(at, [bytes(300_000)])
        sizes.append(size_of(engine, "journal.db-wal"))
    return sizes


async def test_deleted_batches_give_their_space_back(engine: SqliteEngine) -> None:
    journal = await full_of_batches(engine)
    await journal.batches.delete(1, before=0, rows_max=1, bytes_max=PLENTY)
    pages = int(await pragma(journal, "page_count"))

    while await journal.batches.delete(1, before=PLENTY, rows_max=4, bytes_max=PLENTY):
        pass
    assert int(await pragma(journal, "page_count")) == pages
    assert await pragma(journal, "synchronous") == SYNCED
    while await journal.batches.give_back():
        pass
    assert await pragma(journal, "synchronous") == SYNCED

    assert pages * PAGE_BYTES > 50 * 500_000
    assert size_of(engine) < 6 * 1024 * 1024  # Without an append, which a full disk does not take.
    assert size_of(engine, "journal.db-wal") == 0


async def test_a_deletion_is_not_synced_but_an_append_is(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await journal.append(0, [b"zero"], [batch(1, 0), batch(1, 10)])
    ran: list[str] = []
    await writer_of(journal)._connection.set_trace_callback(ran.append)

    assert await journal.batches.delete(1, before=PLENTY, rows_max=1, bytes_max=PLENTY) == 1
    await journal.append(1, [b"one"])

    beginnings = [" ".join(each.split()[:4]) for each in ran]
    assert [
        beginning
        for beginning in beginnings
        if beginning.startswith(("PRAGMA", "DELETE", "INSERT"))
    ][:7] == [
        "INSERT INTO chunks VALUES",  # The tables catch up.
        "INSERT INTO batches VALUES",
        "INSERT INTO batches VALUES",
        "PRAGMA synchronous = NORMAL",
        "DELETE FROM batches WHERE",
        "PRAGMA synchronous = FULL",
        "INSERT INTO chunks VALUES",
    ]
    assert await pragma(journal, "synchronous") == SYNCED


async def test_writes_are_synced_again_after_a_deletion_that_failed(engine: SqliteEngine) -> None:
    writer = writer_of(await claimed(engine))

    with pytest.raises(JournalUnknownError):
        await writer.execute_unsynced("DELETE FROM nowhere", ())

    rows = list(await writer._connection.execute_fetchall("PRAGMA synchronous"))
    assert rows[0][0] == SYNCED


async def test_nothing_is_given_back_in_the_midst_of_a_deletion(engine: SqliteEngine) -> None:
    """The file's end may be deleted next; until then each page that leaves is searched for."""
    journal = await full_of_batches(engine)
    batches = journal.batches
    pages = await pragma(journal, "page_count")

    while await batches.delete(1, before=PLENTY, rows_max=10, bytes_max=PLENTY):
        assert await batches.give_back() is False
    assert await pragma(journal, "page_count") == pages
    assert await batches.give_back() is True


@pytest.mark.parametrize(
    ("step_seconds", "leaving"), [(0.001, [1, 2, 3, 4, 5]), (0.1, [1, 1, 1, 1, 1])]
)
async def test_steps_grow_while_they_are_in_time(
    engine: SqliteEngine, step_seconds: float, leaving: list[int]
) -> None:
    journal = await full_of_batches(engine)
    await journal.batches.delete(1, before=PLENTY, rows_max=250, bytes_max=PLENTY)
    vacuum = Vacuum(writer_of(journal), clock=count(step=step_seconds).__next__)

    left = []
    for _ in leaving:
        pages = int(await pragma(journal, "page_count"))
        assert await vacuum.give_back()
        left.append(pages - int(await pragma(journal, "page_count")))

    assert left == leaving


async def full_of_batches(engine: SqliteEngine) -> Journal:
    """Make a journal with 25 MB of partition 1 in its tables."""
    journal = await claimed(engine)
    for at in range(250):
        await journal.append(at, [b"record"], [batch(1, at * 10, payload=bytes(100_000))])
    await journal.batches.read_headers(1, 0, rows_max=1, upto=PLENTY)  # The tables catch up.
    return journal


async def test_replaced_records_give_their_space_back(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    for at in range(50):
        await journal.append(at, [bytes(500_000)])

    await journal.replace(50, pieces_of([(0, b"all")]))
    assert await pragma(journal, "synchronous") == SYNCED
    await journal.append(50, [b"next"])
    await engine.close()

    assert size_of(engine) < 6 * 1024 * 1024
    assert await read_all(await claimed(engine, "reader"), 50) == [b"next"]


async def test_rows_of_a_snapshot_that_broke_off_are_dropped_with_the_next(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    await journal.append(0, [b"zero"])

    async def broken() -> AsyncIterator[list[tuple[int, bytes]]]:
        for _ in range(40):
            yield [(0, b"piece")]
        raise LookupError

    with pytest.raises(LookupError):
        await journal.replace(1, broken())
    await journal.replace(1, pieces_of([(0, b"zero")]))

    rows = await writer_of(journal).execute("SELECT count(*) FROM snapshot_pieces")
    assert rows[0][0] == 1


async def test_deposed_owner_leaves_no_piece_of_its_snapshot(engine: SqliteEngine) -> None:
    elder = await claimed(engine)
    await elder.append(0, [b"zero"])

    async def overtaken() -> AsyncIterator[list[tuple[int, bytes]]]:
        await claimed(engine, "younger")
        yield [(0, b"piece")]

    with pytest.raises(JournalFencedError):
        await elder.replace(1, overtaken())

    rows = await writer_of(elder).execute("SELECT count(*) FROM snapshot_pieces")
    assert rows[0][0] == 0


async def test_search_by_time_goes_through_more_batches_than_one_step(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    for at in range(5):
        first = at * 1_000
        batches = [batch(1, first + n, 1, timestamp_ms=first + n) for n in range(1_000)]
        await journal.append(at, [b"record"], batches)

    found = await journal.batches.first_at(1, 4_999, upto=PLENTY)

    assert found is not None
    assert found.base_offset == 4_999
    assert await journal.batches.first_at(1, 5_000, upto=PLENTY) is None


def test_no_file_is_left_open_after_close(tmp_path: Path) -> None:
    async def open_and_close() -> None:
        for _ in range(3):
            await (await SqliteJournal.open(tmp_path, service="test")).close()

    before = open_files()
    asyncio.run(open_and_close())

    assert open_files() == before


def open_files() -> int:
    """Count this process's open files; 0 where the system does not tell."""
    listing = Path("/proc/self/fd")
    return len(list(listing.iterdir())) if listing.exists() else 0
