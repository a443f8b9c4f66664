"""The witness of a journal: what a start finds out about commits that are gone."""

import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import damaged_logs
import pytest
from journal_harness import batch, read_all
from journal_processes import kill_after, start_appender

from semel_runtime.journal import JournalOpenError
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.journal.sqlite.journal_end import accept_end
from semel_runtime.journal.witness import WITNESS_FILE, JournalEnd, Witness

UNCHECKED = SqliteOptions(end_checked=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def filled(folder: Path, count: int, *, token: str = "a service") -> None:  # noqa: S107 - no secret
    """Let a service append some records, and stop."""
    async with await SqliteJournal.open(folder, service="test") as journal:
        at = (await journal.claim(token)).next_offset
        for offset in range(at, at + count):
            await journal.append(offset, [b"x"], [batch(1, offset, 1)])


async def opened(folder: Path) -> int:
    """Open a journal, and return how many records it has."""
    async with await SqliteJournal.open(folder, service="test") as journal:
        await journal.claim("another")
        return len(await read_all(journal))


def end_of(folder: Path) -> JournalEnd:
    """Return what the witness says."""
    witness = Witness.open(folder)
    assert witness is not None
    witness.close()
    return witness.end


# -- the file ------------------------------------------------------------------------------------


def test_a_torn_write_leaves_what_was_said_before(folder: Path) -> None:
    folder.mkdir()
    witness = Witness.make(folder, JournalEnd(1, 5))
    witness.write(JournalEnd(1, 6))
    witness.write(JournalEnd(1, 7))
    witness.close()
    assert end_of(folder) == JournalEnd(1, 7)
    data = bytearray((folder / WITNESS_FILE).read_bytes())
    newest = 0 if data[:12] > data[4096:4108] else 4096
    data[newest + 20] ^= 1
    (folder / WITNESS_FILE).write_bytes(data)
    assert end_of(folder) == JournalEnd(1, 6)


async def test_a_witness_that_cannot_be_read_is_no_reset(folder: Path) -> None:
    await filled(folder, 3)
    (folder / WITNESS_FILE).write_bytes(b"\0" * 8192)
    for _ in range(2):
        with pytest.raises(JournalOpenError, match=r"journal\.end is damaged.*semel recover"):
            await opened(folder)
    async with await SqliteJournal.open(folder, service="test", options=UNCHECKED):
        pass
    accept_end(folder)
    assert await opened(folder) == 3


async def test_a_witness_that_is_missing_is_no_reset(folder: Path) -> None:
    await filled(folder, 3)
    (folder / WITNESS_FILE).unlink()
    with pytest.raises(JournalOpenError, match=r"journal\.end is missing.*semel recover"):
        await opened(folder)


async def test_a_journal_of_an_older_release_gets_a_witness(folder: Path) -> None:
    async with await SqliteJournal.open(folder, service="test", options=UNCHECKED) as journal:
        await journal.claim("older release")
        await journal.append(0, [b"x", b"y"])
    assert not (folder / WITNESS_FILE).exists()
    assert await opened(folder) == 2
    assert end_of(folder) == JournalEnd(2, 2)


async def test_a_journal_that_an_older_release_has_written_goes_on(folder: Path) -> None:
    await filled(folder, 3)
    async with await SqliteJournal.open(folder, service="test", options=UNCHECKED) as journal:
        await journal.claim("older release")
        await journal.append(3, [b"x"])
    assert await opened(folder) == 4


# -- commits that are gone -----------------------------------------------------------------------


async def test_an_older_copy_is_refused_and_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    await filled(folder, 3)
    shutil.copy(folder / "journal.db", tmp_path / "copy")
    await filled(folder, 2)
    shutil.copy(tmp_path / "copy", folder / "journal.db")
    for _ in range(2):
        with pytest.raises(JournalOpenError, match="ends at offset 3 under claim epoch 1, but"):
            await opened(folder)
    assert (folder / "journal.db").read_bytes() == (tmp_path / "copy").read_bytes()
    assert end_of(folder) == JournalEnd(1, 5)


async def test_a_whole_folder_is_as_good_as_when_it_was_copied(
    folder: Path, tmp_path: Path
) -> None:
    await filled(folder, 3)
    shutil.copytree(folder, tmp_path / "copy")
    await filled(folder, 2)
    assert await opened(tmp_path / "copy") == 3


async def test_an_older_copy_that_was_accepted_goes_on(folder: Path, tmp_path: Path) -> None:
    await filled(folder, 3)
    shutil.copy(folder / "journal.db", tmp_path / "copy")
    await filled(folder, 2)
    shutil.copy(tmp_path / "copy", folder / "journal.db")
    async with await SqliteJournal.open(folder, service="test", options=UNCHECKED) as journal:
        await journal.claim("recovery")
    with pytest.raises(JournalOpenError):
        await opened(folder)
    accept_end(folder)
    assert await opened(folder) == 3


async def test_a_killed_process_leaves_a_witness_of_all_that_it_acknowledged(folder: Path) -> None:
    appender = await start_appender(folder)
    acknowledged = await kill_after(appender, 20)
    end = end_of(folder)
    assert end.next_offset > acknowledged
    assert end.log_position > 0
    assert await opened(folder) >= end.next_offset


@pytest.mark.parametrize("wal_bytes", [1 << 24, 1 << 18], ids=["one log", "logs that begin again"])
async def test_a_damaged_log_is_refused_or_has_lost_nothing(folder: Path, wal_bytes: int) -> None:
    appender = await start_appender(folder, wal_bytes=wal_bytes)
    await kill_after(appender, 60)
    random = Random(7)
    trials = [*damaged_logs.flips(folder, random, 16), *damaged_logs.cuts(folder, random, 8)]
    results = await damaged_logs.all_of(folder, iter(trials), service="test")
    outcomes = Counter(result.outcome for result in results)
    assert outcomes.keys() <= {"refused", "unchanged"}, results
    assert outcomes["refused"] > 8
    assert all(
        "semel recover" in result.sentence for result in results if result.outcome == "refused"
    )


async def test_a_fenced_process_leaves_the_witness_of_its_successor(folder: Path) -> None:
    options = SqliteOptions(exclusive=False)
    elder = await SqliteJournal.open(folder, service="test", options=options)
    await elder.claim("elder")
    twin = await SqliteJournal.open(folder, service="test", options=options)
    await twin.claim("twin")
    await twin.append(0, [b"x"])
    await elder.close()
    assert end_of(folder)[:2] == (2, 1)
    await twin.close()
    assert end_of(folder) == JournalEnd(2, 1)


def test_the_witness_is_for_its_user_alone(folder: Path) -> None:
    folder.mkdir()
    before = os.umask(0)
    Witness.make(folder, JournalEnd(1, 1)).close()
    os.umask(before)
    assert (folder / WITNESS_FILE).stat().st_mode & 0o777 == 0o600
