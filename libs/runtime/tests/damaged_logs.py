"""Trials: a bit is flipped in the write-ahead log of a killed service, or the log is cut, or gone.

Each trial works on a copy of the data folder. Its start either is refused with a sentence, or it
finds everything that a start on the undamaged folder finds, or all of it but the commits behind the
witness: the service was killed before it acknowledged these. `semel check` names each damage that a
start refuses. As a program, on the folder of a killed
service:

    python libs/runtime/tests/damaged_logs.py FOLDER "semel-broker 0" --flips 100 --cuts 50
"""

import argparse
import asyncio
import hashlib
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from semel_runtime.journal import JournalError, JournalOpenError
from semel_runtime.journal.sqlite import SqliteJournal
from semel_runtime.journal.sqlite.file_check import open_stopped
from semel_runtime.journal.witness import read_witness

LOG = "journal.db-wal"
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_SALTS = slice(16, 24)
_TABLES = ("chunks", "batches", "snapshot_pieces")


class Trial(NamedTuple):
    """One kind of damage, at one place."""

    kind: str
    damage: Callable[[Path], None]


class Result(NamedTuple):
    """What came of a trial."""

    kind: str
    outcome: str
    """`refused`, `unchanged`, or what is wrong."""
    sentence: str


def flips(folder: Path, random: Random, count: int) -> Iterator[Trial]:
    """Yield flips of one bit each: in the header of the log, in headers of frames, in pages."""
    size = (folder / LOG).stat().st_size
    page_bytes = int.from_bytes((folder / LOG).read_bytes()[8:12])
    frame_bytes = _FRAME_HEADER_BYTES + page_bytes
    frames = (size - _LOG_HEADER_BYTES) // frame_bytes
    for number in range(count):
        frame = _LOG_HEADER_BYTES + random.randrange(frames) * frame_bytes
        kind, start, length = (
            ("flip in the log's header", 0, _LOG_HEADER_BYTES),
            ("flip in a frame's header", frame, _FRAME_HEADER_BYTES),
            ("flip in a page", frame + _FRAME_HEADER_BYTES, page_bytes),
            ("flip in a page", frame + _FRAME_HEADER_BYTES, page_bytes),
        )[number % 4]
        yield Trial(kind, _flip(start + random.randrange(length), random.randrange(8)))


def cuts(folder: Path, random: Random, count: int) -> Iterator[Trial]:
    """Yield cuts of the log, somewhere; and the log that is gone."""
    size = (folder / LOG).stat().st_size
    yield Trial("log deleted", lambda copy: (copy / LOG).unlink())
    yield Trial("log emptied", _cut(0))
    for _ in range(count - 2):
        yield Trial("log cut", _cut(random.randrange(1, size)))


async def run(folder: Path, trial: Trial, *, service: str, expected: frozenset[str]) -> Result:
    """Damage a copy of the folder, and start on it."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        copy = Path(name) / "copy"
        shutil.copytree(folder, copy)
        trial.damage(copy)
        before = _files(copy)
        is_named = await asyncio.to_thread(_is_end_named, copy)
        try:
            found = await content(copy, service=service)
        except JournalOpenError as error:
            told = "refused" if _files(copy) == before else "refused, but files were changed"
            if not is_named:
                told += ", but `semel check` does not name it"
            return Result(trial.kind, told, str(error))
        except JournalError as error:
            return Result(trial.kind, "refused", str(error))
        return Result(trial.kind, "unchanged" if found in expected else "LOSS", "")


async def content(folder: Path, *, service: str) -> str:
    """Start on a folder, as a service does; return a digest of all that it finds."""
    async with await SqliteJournal.open(folder, service=service) as journal:
        claim = await journal.claim("a trial")
        async for _ in journal.read_snapshot():
            pass
        async for _ in journal.read(claim.first_offset, max_bytes=1 << 20):
            pass
    digest = hashlib.sha256()
    connection = sqlite3.connect(folder / "journal.db")
    for table in _TABLES:
        for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2"):  # noqa: S608 - a constant
            digest.update(repr(row).encode())
    digest.update(repr(connection.execute("SELECT * FROM positions").fetchall()).encode())
    connection.close()
    return digest.hexdigest()


async def all_of(folder: Path, trials: Iterator[Trial], *, service: str) -> list[Result]:
    """Run trials one after the other."""
    expected = await _complete(folder, service=service)
    return [await run(folder, trial, service=service, expected=expected) for trial in trials]


def _is_end_named(folder: Path) -> bool:
    with open_stopped(folder) as journal:
        journal.check_end()
    return bool(journal.found)


async def _complete(folder: Path, *, service: str) -> frozenset[str]:
    """Return digests of the whole folder, and of its log cut at each frame behind the witness."""
    data = (folder / LOG).read_bytes()
    frame_bytes = _FRAME_HEADER_BYTES + int.from_bytes(data[8:12])
    witness = read_witness(folder)
    assert witness is not None
    is_witnessed = witness.log_number == int.from_bytes(data[_SALTS])
    acknowledged = witness.log_position if is_witnessed else 0
    sizes = range(_LOG_HEADER_BYTES + acknowledged * frame_bytes, len(data), frame_bytes)
    whole = await _content_of_copy(folder, len(data), service=service)
    digests = {whole}
    for size in sizes:
        digests.add(digest := await _content_of_copy(folder, size, service=service))
        if digest == whole:
            break
    return frozenset(digests)


async def _content_of_copy(folder: Path, log_bytes: int, *, service: str) -> str:
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        copy = Path(name) / "copy"
        shutil.copytree(folder, copy)
        _cut(log_bytes)(copy)
        return await content(copy, service=service)


def _flip(at: int, bit: int) -> Callable[[Path], None]:
    def damage(copy: Path) -> None:
        data = bytearray((copy / LOG).read_bytes())
        data[at] ^= 1 << bit
        (copy / LOG).write_bytes(data)

    return damage


def _cut(size: int) -> Callable[[Path], None]:
    def damage(copy: Path) -> None:
        with (copy / LOG).open("r+b") as log:
            log.truncate(size)

    return damage


def _files(copy: Path) -> dict[str, bytes]:
    """Return what may not change; SQLite makes an empty log where there is none."""
    return {
        path.name: path.read_bytes()
        for path in copy.iterdir()
        if not path.name.endswith(("-shm", ".lock")) and path.stat().st_size
    }


def main() -> None:
    """Count the outcomes of trials on one folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("service")
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random = Random(given.seed)
    trials = [*flips(given.folder, random, given.flips), *cuts(given.folder, random, given.cuts)]
    results = asyncio.run(all_of(given.folder, iter(trials), service=given.service))
    for (kind, outcome), count in sorted(Counter(result[:2] for result in results).items()):
        sys.stdout.write(f"{given.service:20} {kind:26} {outcome:10} {count}\n")


if __name__ == "__main__":
    main()
