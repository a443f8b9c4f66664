"""The log in front of SQLite's tables: damaged, lost and foreign files, and writes that fail."""

import errno
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from journal_harness import (
    SqliteEngine,
    batch,
    claimed,
    read_all,
)
from logged_folders import (
    contents,
    crashed,
    fill,
    flip,
    frames_in,
    killed,
    logs,
    recovered,
    refused,
    stored,
)

from semel_runtime.journal import (
    JournalOpenError,
    JournalUnknownError,
)
from semel_runtime.journal.sqlite import SqliteJournal, table_filler
from semel_runtime.journal.sqlite.file_check import open_stopped


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables get nothing before a reader waits for it."""
    monkeypatch.setattr(table_filler, "_DELAY_SECONDS", 3_600)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path / "data")
    yield engine
    await engine.close()


async def test_a_damaged_frame_in_the_middle_is_refused_and_never_served(
    engine: SqliteEngine,
) -> None:
    folder = await crashed(engine)
    flip(folder, frames_in(folder)[3] + 40)

    await refused(folder, "records from 4 on, but records 3 to 3 before them are damaged")
    assert await recovered(folder) == [b"0", b"1", b"2"]


async def test_a_damaged_last_frame_that_was_acknowledged_is_refused(engine: SqliteEngine) -> None:
    folder = await crashed(engine)
    flip(folder, frames_in(folder)[4] + 40)

    await refused(folder, r"ends at offset 4 .* says that it went to offset 5 .*journal\.log-\*")
    assert await recovered(folder) == [b"0", b"1", b"2", b"3"]


async def test_damage_in_records_that_the_tables_have_is_no_matter(engine: SqliteEngine) -> None:
    folder = await crashed(engine)
    flip(folder, frames_in(folder)[0] + 40)

    assert (await contents(folder))[0] == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_torn_frame_that_was_never_acknowledged_is_cut_off(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 4)

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", broken)
        with pytest.raises(JournalUnknownError):
            await journal.append(4, [b"never"])
    first = frames_in(engine.folder)[4]
    whole = (engine.folder / "journal.log-1-0").read_bytes()
    for end in range(first, first + 70, 7):
        folder = killed(engine)
        (folder / "journal.log-1-0").write_bytes(whole[:end] + bytes(len(whole) - end))
        with open_stopped(folder) as checked:
            checked.check_end()
            assert [data for _, data in checked.records()] == [b"0", b"1", b"2", b"3"]
            assert checked.found == []
        assert (await contents(folder))[0] == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("size", [0, 1, 200, 900])
async def test_a_shorter_file_is_refused(engine: SqliteEngine, size: int) -> None:
    folder = await crashed(engine)
    with (folder / "journal.log-1-0").open("r+b") as file:
        file.truncate(min(size, frames_in(folder)[4] + 8))

    await refused(folder, "says that it went to offset 5")


async def test_a_lost_file_is_refused(engine: SqliteEngine) -> None:
    folder = await crashed(engine)
    (folder / "journal.log-1-0").unlink()

    await refused(folder, "ends at offset 2 .* says that it went to offset 5")


async def test_a_file_of_another_folder_is_refused(engine: SqliteEngine, tmp_path: Path) -> None:
    folder = await crashed(engine)
    other = SqliteEngine(tmp_path / "other")
    await crashed(other)
    shutil.copy(other.folder / "journal.log-1-0", folder / "journal.log-1-0")

    await refused(folder, "ends at offset 2 .* says that it went to offset 5")
    await other.close()


async def test_the_name_of_a_log_that_is_damaged_is_refused(engine: SqliteEngine) -> None:
    folder = await crashed(engine)
    connection = sqlite3.connect(folder / "journal.db", isolation_level=None)
    connection.execute("UPDATE meta SET value = 'x' WHERE key = 'log'")
    connection.close()

    with pytest.raises(JournalOpenError, match="the name of its log is damaged: 'x'"):
        await contents(folder)


async def test_a_check_reads_what_the_tables_lack(engine: SqliteEngine) -> None:
    folder = await crashed(engine)
    with open_stopped(folder) as journal:
        journal.check_structure()
        journal.check_end()
        assert [data for _, data in journal.records()] == [b"0", b"1", b"2", b"3", b"4"]
        found = [each.payload for each in journal.batches(1, 1, name="one")]
        assert found == [b"1", b"2", b"3", b"4"]
        assert journal.found == []
    assert stored(folder) == 2


# -- failures --------------------------------------------------------------------------------------


async def test_a_disk_without_room_for_the_log_takes_appends_into_the_tables(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    journal = await claimed(engine)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        await fill(journal, 0, 3)
    assert stored(engine.folder) == 3
    assert logs(engine.folder) == []

    await fill(journal, 3, 5)
    assert stored(engine.folder) == 3
    assert await contents(killed(engine)) == ([b"0", b"1", b"2", b"3", b"4"],) * 2


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
async def test_a_write_that_fails_kills_the_handle(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 2)

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, broken)
        with pytest.raises(JournalUnknownError, match=r"writing the log in .* failed: .*Input/out"):
            await journal.append(2, [b"lost"])
    with pytest.raises(JournalUnknownError, match="the handle is dead: writing the log"):
        await journal.append(2, [b"never"])
    await journal.close()

    records, _ = await contents(engine.folder)
    assert records in ([b"0", b"1"], [b"0", b"1", b"lost"])


async def test_log_files_that_cannot_be_made_kill_the_handle(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    journal = await claimed(engine)
    monkeypatch.setattr(os, "posix_fallocate", broken)
    with pytest.raises(JournalUnknownError, match=r"no log can be made: .*Input/output"):
        await journal.append(0, [b"zero"])


async def test_tables_that_cannot_be_filled_kill_the_handle_and_lose_nothing(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    assert isinstance(journal, SqliteJournal)
    await fill(journal, 0, 2)
    pages = await journal._writer.execute("PRAGMA page_count")
    await journal._writer.execute(f"PRAGMA max_page_count = {pages[0][0]}")
    heard: list[JournalUnknownError] = []
    journal.on_death(heard.append)
    for at in range(2, 8):
        await journal.append(at, [bytes(100_000)])
    with pytest.raises(JournalUnknownError, match="database or disk is full"):
        await read_all(journal)
    with pytest.raises(JournalUnknownError, match="the handle is dead"):
        await journal.append(8, [b"never"])
    journal.on_death(heard.append)
    await journal.close()
    assert [str(each) for each in heard] == [str(heard[0])] * 2
    assert "database or disk is full" in str(heard[0])

    assert logs(engine.folder)
    records, payloads = await contents(engine.folder)
    assert records == [b"0", b"1"] + [bytes(100_000)] * 6
    assert payloads == [b"0", b"1"]


async def test_a_note_that_fails_is_the_death_of_the_handle(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    assert isinstance(journal, SqliteJournal)
    pages = await journal._writer.execute("PRAGMA page_count")
    await journal._writer.execute(f"PRAGMA max_page_count = {pages[0][0]}")
    heard: list[JournalUnknownError] = []
    journal.on_death(heard.append)

    with pytest.raises(JournalUnknownError, match="database or disk is full"):
        await journal.set_note("long", "x" * 300_000)
    with pytest.raises(JournalUnknownError, match="the handle is dead"):
        await journal.append(0, [b"never"])
    assert ["database or disk is full" in str(each) for each in heard] == [True]


async def test_a_closed_handle_is_not_dead(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    heard: list[JournalUnknownError] = []
    journal.on_death(heard.append)
    await journal.close()
    with pytest.raises(JournalUnknownError, match="the handle is closed"):
        await journal.append(0, [b"never"])
    assert heard == []


async def test_batches_that_overlap_are_refused_before_they_are_in_the_log(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine, "first")
    await journal.append(0, [b"zero"], [batch(1, 0), batch(2, 0)])
    await journal.close()
    for number, batches in enumerate(
        ([batch(1, 9)], [batch(1, 10), batch(1, 19)], [batch(3, 5), batch(2, 3)])
    ):
        journal = await claimed(engine, f"token {number}")
        with pytest.raises(JournalUnknownError, match="misplaced"):
            await journal.append(1, [b"one"], batches)
        await journal.close()
    assert (await contents(engine.folder))[0] == [b"zero"]
