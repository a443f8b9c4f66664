"""Crashes of a journal on real files: killed processes, and losses of unsynced bytes.

A killed process works on a data folder, step by step, and is killed at any moment. A loss is made
of a copy of the folder, taken while something is written and not synced yet, in the log or in a
file of payloads: each sector of it has its new content or the old one, and the witness, which has
no sync of its own, may be an older one.

After each, all acknowledged steps are there, and at most the one more that was under way. As a
program:

    python libs/runtime/tests/journal_crashes.py --kills 500 --losses 500
"""

import argparse
import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import BinaryIO
from unittest import mock

from journal_workload import OPTIONS, Content, Expected, content_of

from semel_runtime.journal.sqlite import SqliteJournal, table_filler

HARNESS = Path(__file__).parent
_SECTOR_BYTES = 512
_KILLS_MAX = 50
"""Of one folder: what is expected of it is computed from its first step on."""


async def kill(folder: Path, random: Random, *, seed: int, steps: int) -> int:
    """Let a process go on after `steps`, kill it, check; return how many steps are done then."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HARNESS / "journal_workload.py"),
        str(folder),
        str(seed),
        str(steps),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(HARNESS)},
    )
    assert worker.stdout is not None
    lines = [await worker.stdout.readline() for _ in range(random.randrange(1, 40))]
    for _ in range(random.randrange(50)):
        await asyncio.sleep(0)
    worker.send_signal(signal.SIGKILL)
    rest, _ = await worker.communicate()
    done = b"".join([*lines, rest]).split()
    assert done, "it has ended before it has done anything"
    return await _checked(folder, seed=seed, acknowledged=int(done[-1]))


async def _checked(folder: Path, *, seed: int, acknowledged: int) -> int:
    """Check a folder; return how many steps it has."""
    found = await _content(folder)
    expected = Expected(seed)
    for steps in (acknowledged, acknowledged + 1):
        if await expected.content(steps) == found:
            return steps
    raise AssertionError(f"seed {seed}: not what {acknowledged} steps, or one more, leave")


async def _content(folder: Path) -> Content:
    async with await SqliteJournal.open(folder, service="test", options=OPTIONS) as journal:
        claim = await journal.claim(f"check {Random().random()}")
        return await content_of(journal, claim.first_offset)


async def kill_often(folder: Path, count: int, *, seed: int) -> None:
    """Kill processes on one folder, one after the other."""
    random = Random(seed)
    steps = 0
    for _ in range(count):
        steps = await kill(folder, random, seed=seed, steps=steps)


class Losses:
    """Copies of a folder as losses of power would leave it, in the midst of its appends."""

    def __init__(self, folder: Path, copies: Path, seed: int) -> None:
        self._folder = folder
        self._copies = copies
        self._random = Random(seed)
        self._unsynced: dict[int, list[tuple[int, bytes, bytes]]] = {}
        """Of each descriptor: where it was written, the bytes before, and the new ones."""
        self._witness = b""
        self.made: list[tuple[Path, int]] = []
        """The copies, and how many steps were acknowledged."""
        self.steps = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """See each write of a log or of payloads, and its sync."""
        self._write, self._sync = os.pwrite, os.fdatasync
        with (
            mock.patch.object(os, "pwrite", self._pwrite),
            mock.patch.object(os, "fdatasync", self._fdatasync),
        ):
            yield

    def _pwrite(self, descriptor: int, data: bytes, at: int) -> int:
        name = _path_of(descriptor).name
        if name.startswith("journal.payloads-") or bytes(data[:8]) == b"SEMELLOG":
            self._note(descriptor, bytes(data), at)
        return self._write(descriptor, data, at)

    def _note(self, descriptor: int, new: bytes, at: int) -> None:
        with _path_of(descriptor).open("rb") as file:
            file.seek(at)
            old = file.read(len(new))
        self._unsynced.setdefault(descriptor, []).append((at, old.ljust(len(new), b"\0"), new))

    def _fdatasync(self, descriptor: int) -> None:
        if descriptor in self._unsynced:
            if self._random.random() < 0.1:
                self._lose()
            del self._unsynced[descriptor]
        elif not self._unsynced and (self._folder / "journal.end").exists():
            self._witness = (self._folder / "journal.end").read_bytes()
        self._sync(descriptor)

    def _lose(self) -> None:
        copy = self._copies / f"loss-{len(self.made)}"
        shutil.copytree(self._folder, copy)
        if self._witness and self._random.random() < 0.5:
            (copy / "journal.end").write_bytes(self._witness)
        for descriptor, writes in self._unsynced.items():
            with (copy / _path_of(descriptor).name).open("r+b") as file:
                for at, old, new in writes:
                    self._lose_sectors(file, at, old, new)
        self.made.append((copy, self.steps))

    def _lose_sectors(self, file: BinaryIO, at: int, old: bytes, new: bytes) -> None:
        for start in range(-(at % _SECTOR_BYTES), len(new), _SECTOR_BYTES):
            if self._random.random() < 0.5:
                file.seek(at + max(start, 0))
                file.write(old[max(start, 0) : start + _SECTOR_BYTES])


def _path_of(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").resolve()


async def lose_often(folder: Path, *, steps: int, seed: int) -> int:
    """Work on a folder, and check what losses of power leave of it; return how many there were."""
    losses = Losses(folder / "data", folder, seed)
    workload = Expected(seed).workload
    # What is copied while an append is under way must not be written to: the tables follow between.
    with losses.watching(), mock.patch.object(table_filler, "_DELAY_SECONDS", 3_600):
        async with await SqliteJournal.open(
            folder / "data", service="test", options=OPTIONS
        ) as journal:
            await journal.claim("worker")
            for _ in range(steps):
                await workload.step(journal)
                losses.steps = workload.steps
    for copy, acknowledged in losses.made:
        await _checked(copy, seed=seed, acknowledged=acknowledged)
        shutil.rmtree(copy)
    return len(losses.made)


async def _run(kills: int, losses: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        for number, first in enumerate(range(0, kills, _KILLS_MAX)):
            count = min(_KILLS_MAX, kills - first)
            await kill_often(Path(name) / f"killed-{number}", count, seed=seed + number)
            sys.stdout.write(f"{first + count} kills\n")
        lost, number = 0, 0
        while lost < losses:
            number += 1
            folder = Path(name) / f"lost-{number}"
            lost += await lose_often(folder, steps=200, seed=seed + number)
            shutil.rmtree(folder)
        sys.stdout.write(f"{lost} losses\n")


def main() -> None:
    """Crash as often as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--losses", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    asyncio.run(_run(given.kills, given.losses, given.seed))


if __name__ == "__main__":
    main()
