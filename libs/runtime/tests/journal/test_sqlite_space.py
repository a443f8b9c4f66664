"""Room on the disk: the reserve, the write-ahead log, and space that is given back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from journal_harness import PLENTY, SqliteEngine, batch, claimed, pieces_of, read_all

from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.journal.sqlite.connections import Writer
from semel_runtime.journal.sqlite.space import DiskSpace, statvfs_free_bytes


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
    assert await pragma(journal, "synchronous") == 2


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
        assert journal.has_room() is room


async def test_write_ahead_log_stays_bounded_under_appends_and_reads(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)

    async def read() -> None:
        while True:
            await journal.batches.read(1, 0, max_bytes=100_000, upto=PLENTY)

    reader = asyncio.ensure_future(read())
    for at in range(300):
        await journal.append(at, [b"record"], [batch(1, at * 10, payload=bytes(100_000))])
    reader.cancel()

    assert size_of(engine) + size_of(engine, "journal.db-wal") > 300 * 100_000
    assert size_of(engine, "journal.db-wal") < 3 * 1_000 * 4_096


async def test_deleted_batches_give_their_space_back(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    for at in range(50):
        await journal.append(at, [b"record"], [batch(1, at * 10, payload=bytes(500_000))])
    await journal.batches.delete(1, before=0, rows_max=1)
    pages = int(await pragma(journal, "page_count"))

    while await journal.batches.delete(1, before=PLENTY, rows_max=4):
        pass
    await engine.close()

    assert pages * 4096 > 50 * 500_000
    assert size_of(engine) < 6 * 1024 * 1024


async def test_replaced_records_give_their_space_back(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    for at in range(50):
        await journal.append(at, [bytes(500_000)])

    await journal.replace(50, pieces_of([(0, b"all")]))
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
