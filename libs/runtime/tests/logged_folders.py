"""Data folders with a log in front of the tables, as killed processes leave them."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from journal_harness import PLENTY, SqliteEngine, batch, claimed, read_all

from semel_runtime.journal import Journal, JournalOpenError
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.journal.sqlite.file_check import open_stopped
from semel_runtime.journal.sqlite.journal_end import accept_end

LARGE = bytes(300_000)
"""Too large for the log: as a record it goes into the tables at once, as a payload into a file."""


def stored(folder: Path) -> int:
    """Return where the tables end."""
    return int(value(folder, "SELECT next_offset FROM positions"))


def value(folder: Path, query: str) -> str | int:
    connection = sqlite3.connect(folder / "journal.db")
    (found,) = connection.execute(query).fetchone()
    connection.close()
    assert isinstance(found, str | int)
    return found


def logs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("journal.log-*"))


def log_content(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in logs(folder)}


def killed(engine: SqliteEngine) -> Path:
    """Return a copy of the folder, as a killed process would leave it now."""
    copy = engine.folder.parent / f"copy-{len(list(engine.folder.parent.iterdir()))}"
    shutil.copytree(engine.folder, copy)
    return copy


async def contents(folder: Path) -> tuple[list[bytes], list[bytes]]:
    """Return the records of a folder, and the payloads of partition 1, of a first opening."""
    async with await SqliteJournal.open(folder, service="test") as journal:
        await journal.claim("another")
        records = await read_all(journal)
        batches = await journal.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY)
        return records, [each.payload for each in batches]


async def fill(journal: Journal, first: int, end: int) -> None:
    """Append records, each with a batch."""
    for at in range(first, end):
        await journal.append(at, [b"%d" % at], [batch(1, at, 1, payload=b"%d" % at)])


async def crashed(engine: SqliteEngine, *, count: int = 5) -> Path:
    """Return the folder of a killed process, whose tables have 2 of its appends."""
    journal = await claimed(engine)
    await fill(journal, 0, 2)
    assert len(await read_all(journal)) == 2
    await fill(journal, 2, count)
    return killed(engine)


def frames_in(folder: Path) -> list[int]:
    """Return where the frames of the log's first file begin."""
    data = (folder / "journal.log-1-0").read_bytes()
    found, at = [], -1
    while (at := data.find(b"SEMELLOG", at + 1)) >= 0:
        found.append(at)
    return found


def flip(folder: Path, at: int) -> None:
    path = folder / "journal.log-1-0"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


async def refused(folder: Path, match: str) -> None:
    """Check that the folder is refused at each start, and that `semel check` says so, too."""
    before = log_content(folder)
    for _ in range(2):
        with pytest.raises(JournalOpenError, match=rf"(?s){match}.*semel recover"):
            await contents(folder)
    assert log_content(folder) == before
    with open_stopped(folder) as journal:
        journal.check_end()
        assert len(journal.found) == 1


async def recovered(folder: Path) -> list[bytes]:
    """Take the folder as it is, as `semel recover` does; return its records."""
    options = SqliteOptions(end_checked=False)
    async with await SqliteJournal.open(folder, service="test", options=options) as journal:
        await journal.claim("recovery")
    accept_end(folder)
    return (await contents(folder))[0]
