"""Payloads of large appends: in files of their own, once, as long as a batch has them."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from unittest import mock

import pytest
from journal_harness import PLENTY, SqliteEngine, batch, claimed, offsets_read
from logged_folders import contents, killed
from payloads_harness import BLOCK, SIZE, delete, files, fill, payload, read, taken

from semel_runtime.journal import JournalCorruptError, JournalOpenError
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.journal.sqlite.file_check import open_stopped
from semel_runtime.journal.sqlite.payloads import payload_files, payload_space
from semel_runtime.journal.sqlite.payloads.payload_files import PayloadWriter, read_payloads
from semel_runtime.journal.sqlite.payloads.payload_rows import stored_batches


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path / "data")
    yield engine
    await engine.close()


async def test_a_large_payload_is_written_once_and_synced_and_read_from_its_file(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    calls: list[str] = []
    write, sync = os.pwrite, os.fdatasync

    def pwrite(descriptor: int, data: memoryview, at: int) -> int:
        calls.append(f"write {len(data)} to {descriptor}")
        return write(descriptor, data, at)

    def fdatasync(descriptor: int) -> None:
        calls.append(f"sync {descriptor}")
        sync(descriptor)

    with mock.patch.object(os, "pwrite", pwrite), mock.patch.object(os, "fdatasync", fdatasync):
        await fill(journal, 0, 3)

    file = next(call for call in calls if str(SIZE) in call).split()[-1]
    assert [call for call in calls if call.endswith(f" {file}")] == [
        f"write {SIZE} to {file}",
        f"sync {file}",
    ] * 3
    assert files(engine) == ["journal.payloads-1"]
    assert await read(journal) == [payload(0), payload(1), payload(2)]
    assert (engine.folder / "journal.payloads-1").stat().st_mode & 0o777 == 0o600
    assert (engine.folder / "journal.db-wal").stat().st_size < 3 * SIZE


async def test_payloads_are_written_whole_when_the_system_takes_only_parts(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    payloads = [os.urandom(300) if at % 7 else b"" for at in range(1_500)]
    write, calls = os.pwrite, count()

    def short(descriptor: int, data: memoryview, at: int) -> int:
        """Write whole blocks, and every other time answer with less than these."""
        return write(descriptor, data[: BLOCK * 2], at) - 100 * (next(calls) % 2)

    with mock.patch.object(os, "pwrite", short):
        await journal.append(
            0, [b"all"], [batch(1, at, 1, payload=each) for at, each in enumerate(payloads)]
        )

    assert await read(journal) == payloads


async def test_a_file_that_another_process_has_just_made_is_left_to_it(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    (engine.folder / "journal.payloads-1").write_bytes(b"another process's")
    with mock.patch.object(payload_files, "files_in", return_value=iter(())):
        await fill(journal, 0, 1)

    assert files(engine) == ["journal.payloads-1", "journal.payloads-2"]
    assert await read(journal) == [payload(0)]


async def test_reads_stop_at_their_bytes_and_headers_come_without_payloads(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 4)

    assert await read(journal, 1, max_bytes=2 * SIZE + 1_000) == [payload(1), payload(2)]
    headers = await journal.batches.read_headers(1, 0, rows_max=9, upto=PLENTY)
    assert [(each.base_offset, each.payload) for each in headers] == [(at, b"") for at in range(4)]


async def test_a_full_file_is_followed_by_the_next_and_goes_with_its_last_payload(
    small_files: SqliteEngine,
) -> None:
    journal = await claimed(small_files)
    await fill(journal, 0, 5)
    assert files(small_files) == [f"journal.payloads-{number}" for number in (1, 2, 3)]

    await delete(journal, 3)

    assert files(small_files) == ["journal.payloads-2", "journal.payloads-3"]
    assert await read(journal) == [payload(3), payload(4)]


async def test_a_deleted_payload_becomes_a_hole_beside_those_of_other_partitions(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    for at, partition in enumerate((1, 2, 2, 1, 1, 2, 1)):
        await fill(journal, at, at + 1, partition=partition)
    before = taken(engine)

    await delete(journal, 7)

    assert before - taken(engine) > 4 * (SIZE - 2 * BLOCK)
    kept = await journal.batches.read(2, 0, max_bytes=PLENTY, upto=PLENTY)
    assert [each.payload for each in kept] == [payload(1), payload(2), payload(5)]


async def test_only_the_last_block_of_a_payload_stays_until_its_file_goes(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    for at in range(3):
        await journal.append(at, [b"record"], [batch(1, at, 1, payload=payload(at) + b"end")])

    await delete(journal, 3)

    assert taken(engine) == 3 * BLOCK


async def test_a_damaged_index_of_places_costs_no_payload(
    engine: SqliteEngine, small_files: SqliteEngine
) -> None:
    for each in (engine, small_files):
        journal = await claimed(each)
        await fill(journal, 0, 5)
        await fill(journal, 5, 6, partition=2)
        await journal.close()
        lose_entries_of_the_index(each.folder / "journal.db")

        journal = await claimed(each, "next")
        await delete(journal, 3)

        assert await read(journal) == [payload(3), payload(4)]
        kept = await journal.batches.read(2, 0, max_bytes=PLENTY, upto=PLENTY)
        assert [one.payload for one in kept] == [payload(5)]


def lose_entries_of_the_index(file: Path) -> None:
    """Let the index lack the places of later batches, as if a page of it were damaged."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    change = "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'batches_by_payload'"
    connection.execute(change, ("IS NOT NULL", "IS NOT NULL AND base_offset < 3"))
    connection.close()
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("REINDEX batches_by_payload")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(change, (" AND base_offset < 3", ""))
    connection.close()


async def test_a_file_without_payloads_takes_the_next_ones(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 2)
    await delete(journal, 2)
    await fill(journal, 2, 3)
    assert await read(journal) == [payload(2)]

    await delete(journal, 3)
    await journal.claim("again")
    await fill(journal, 3, 4)
    assert await read(journal) == [payload(3)]


async def test_no_hole_takes_a_payload_whose_row_is_on_its_way(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    assert isinstance(journal, SqliteJournal)
    await fill(journal, 0, 2)
    filler, is_written, may_put = journal._appender.filler, asyncio.Event(), asyncio.Event()
    assert filler is not None
    put = filler.put

    async def late(*given: object) -> float:
        is_written.set()
        await may_put.wait()
        return await put(*given)  # type: ignore[arg-type]  # passed on

    with mock.patch.object(filler, "put", late):
        appending = asyncio.ensure_future(fill(journal, 2, 3))
        await is_written.wait()
        await delete(journal, 2)
        may_put.set()
        await appending

    assert taken(engine) < SIZE + 3 * BLOCK
    assert await read(journal) == [payload(2)]


async def test_no_space_comes_back_in_the_midst_of_a_deletion(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 3)
    before = taken(engine)

    while await journal.batches.delete(1, before=3, rows_max=1, bytes_max=PLENTY):
        assert not await journal.batches.give_back()
    assert taken(engine) == before
    assert await journal.batches.give_back()


async def test_a_synced_commit_comes_before_a_hole(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    assert isinstance(journal, SqliteJournal)
    await fill(journal, 0, 1)
    while await journal.batches.delete(1, before=1, rows_max=9, bytes_max=PLENTY):
        pass
    events: list[str] = []
    await journal._writer._connection.set_trace_callback(events.append)
    with mock.patch.object(payload_space, "punch", side_effect=lambda *_: events.append("hole")):
        await journal.batches.give_back()

    ran = [event for event in events if not event.startswith("SELECT")]
    assert [event.split(" SET")[0] for event in ran] == ["UPDATE owner", "hole"]


async def test_space_stays_until_the_deletion_is_durable(engine: SqliteEngine) -> None:
    """A loss of power may bring the batch back: then its payload is there, too."""
    journal = await claimed(engine)
    await fill(journal, 0, 2)
    whole = killed(engine)

    await journal.batches.delete(1, before=2, rows_max=9, bytes_max=PLENTY)
    shutil.copy(engine.folder / "journal.payloads-1", whole / "journal.payloads-1")
    assert (await contents(whole))[1] == [payload(0), payload(1)]

    assert await journal.batches.delete(1, before=2, rows_max=9, bytes_max=PLENTY) == 0
    gone = killed(engine)
    assert await journal.batches.give_back()
    assert taken(engine) < SIZE
    assert (await contents(gone))[1] == []


async def test_space_stays_while_a_read_goes_on_that_found_the_payload(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    assert isinstance(journal, SqliteJournal)
    await fill(journal, 0, 2)
    real, is_reading, may_read = asyncio.to_thread, asyncio.Event(), asyncio.Event()

    async def slow(call: object, *args: object) -> object:
        if call is stored_batches:
            is_reading.set()
            await may_read.wait()
        return await real(call, *args)  # type: ignore[arg-type]  # passed on

    with mock.patch.object(asyncio, "to_thread", slow):
        reading = asyncio.ensure_future(read(journal))
        await is_reading.wait()
        deleting = asyncio.ensure_future(delete(journal, 2))
        _, waiting = await asyncio.wait([deleting], timeout=0.2)
        assert waiting
        may_read.set()
        assert await reading == [payload(0), payload(1)]
        await deleting

    assert taken(engine) < SIZE


async def test_a_rewritten_payload_gives_its_space_back(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 3)

    await journal.batches.rewrite(1, removed=[0], replaced=[batch(1, 1, 1, payload=b"new")])
    assert await journal.batches.give_back()

    assert await read(journal) == [b"new", payload(2)]
    assert taken(engine) < SIZE + 2 * BLOCK


async def test_a_claim_removes_what_no_batch_has(small_files: SqliteEngine) -> None:
    journal = await claimed(small_files)
    await fill(journal, 0, 3)
    with mock.patch.object(payload_space, "_SLACK_BYTES", 0):
        await journal.batches.delete(1, before=1, rows_max=9, bytes_max=PLENTY)
        (small_files.folder / "journal.payloads-9").write_bytes(payload(9))

        successor = await claimed(small_files, "successor")

    assert files(small_files) == [f"journal.payloads-{number}" for number in (1, 2, 9)]
    assert taken(small_files) < 2 * SIZE + 3 * BLOCK
    assert await read(successor) == [payload(1), payload(2)]
    await successor.append(3, [b"record"], [batch(1, 3, 1, payload=payload(3))])
    assert files(small_files) == [f"journal.payloads-{number}" for number in (1, 10, 2, 9)]


async def test_a_deposed_owner_harms_no_payload(engine: SqliteEngine) -> None:
    elder = await claimed(engine, "elder")
    await fill(elder, 0, 1)
    successor = await claimed(engine, "successor")

    with pytest.raises(Exception, match="epoch"):
        await fill(elder, 1, 2)
    await fill(successor, 1, 3)

    assert await read(successor) == [payload(0), payload(1), payload(2)]


@pytest.mark.parametrize("how", ["missing", "cut"])
async def test_a_lost_file_is_refused_by_name_and_recovery_keeps_the_rest(
    small_files: SqliteEngine, how: str
) -> None:
    journal = await claimed(small_files)
    await fill(journal, 0, 4)
    await small_files.close()
    path = small_files.folder / "journal.payloads-1"
    if how == "missing":
        path.unlink()
    else:
        os.truncate(path, SIZE)

    for _ in range(2):
        with pytest.raises(JournalOpenError, match=rf"(?s){path}.*semel recover"):
            await contents(small_files.folder)
    with open_stopped(small_files.folder) as stopped:
        stopped.check_end()
        list(stopped.batches(1, 0, name="topic"))
        assert len(stopped.found) == 2
        assert all("journal.payloads-1" in each.problem for each in stopped.found)

    options = SqliteOptions(end_checked=False)
    async with await SqliteJournal.open(
        small_files.folder, service="test", options=options
    ) as taken_over:
        await taken_over.claim("recovery")
        assert await read(taken_over, 2) == [payload(2), payload(3)]
        with pytest.raises(JournalCorruptError, match=str(path)):
            await read(taken_over)
    assert (await recovered_records(small_files)) == [b"record"] * 4


async def recovered_records(engine: SqliteEngine) -> list[bytes]:
    options = SqliteOptions(end_checked=False)
    async with await SqliteJournal.open(engine.folder, service="test", options=options) as journal:
        await journal.claim("reader")
        return [record async for piece in journal.read(0, max_bytes=PLENTY) for _, record in piece]


async def test_a_disk_without_room_ends_the_handle_and_loses_nothing(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 1)
    full = OSError(28, "No space left on device")

    with (
        mock.patch.object(PayloadWriter, "_write_some", side_effect=full),
        pytest.raises(Exception, match=r"writing payloads in .* failed.*No space left on device"),
    ):
        await fill(journal, 1, 2)

    assert (await contents(killed(engine)))[1] == [payload(0)]


async def test_without_holes_a_file_gives_its_space_back_as_a_whole(
    small_files: SqliteEngine,
) -> None:
    with mock.patch("semel_runtime.journal.sqlite.payloads.holes._FALLOCATE", None):
        journal = await claimed(small_files)
        await fill(journal, 0, 5)
        await delete(journal, 3)

    assert files(small_files) == ["journal.payloads-2", "journal.payloads-3"]
    assert await offsets_read(journal, 0) == [3, 4]


async def test_a_place_in_a_damaged_row_is_an_error(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 1)
    await engine.close()
    (place,) = [payload_files.Place(1, SIZE, 1)]

    with pytest.raises(JournalCorruptError, match="goes up to byte"):
        list(read_payloads(engine.folder, [place]))
