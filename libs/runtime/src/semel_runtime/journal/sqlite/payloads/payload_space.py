"""The space of payloads that no batch has any more.

The table alone says which ranges of a file are in use; an index of it may be damaged, and decides
nothing. Space comes back in steps: a file without any payload is removed, and in others the range
of a deleted payload becomes a hole. First comes the look at the table. Then a synced commit makes
all deletions durable that the look has found, or a loss of power could bring back a batch whose
payload is gone; and it fails under a later claim. Then reads that began before the deletion end.

The file with the highest number is never removed. So no number is given twice, and places that a
step still has to free never lead into a later file. Nor is the file that takes payloads: it is the
highest, unless a process that was deposed has made a later one.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from semel_runtime.journal.sqlite.connections import Readers, Writer
from semel_runtime.journal.sqlite.payloads.holes import punch
from semel_runtime.journal.sqlite.payloads.payload_files import (
    PayloadWriter,
    Place,
    files_in,
    path_of,
)

_STEP_MAX = 256
"""The most payloads whose space comes back in one step."""
_SECTOR_BYTES = 512
"""The unit in which `stat` counts what a file takes."""
_SLACK_BYTES = 1 << 20
"""More than so many bytes of a file without a payload are worth a walk through its payloads."""
_COMMIT = "UPDATE owner SET epoch = epoch WHERE epoch = ?"
_FILES = """
SELECT payload_file, sum(payload_bytes) FROM batches
WHERE payload_file IS NOT NULL GROUP BY payload_file
"""
_PLACES = """
SELECT payload_position, payload_position + payload_bytes FROM batches NOT INDEXED
WHERE payload_file = ? ORDER BY payload_position
"""
_IS_IN_INDEX = "SELECT EXISTS (SELECT 1 FROM batches WHERE payload_file = ?)"
_IS_USED = "SELECT EXISTS (SELECT 1 FROM batches NOT INDEXED WHERE payload_file = ?)"


class _Gap(NamedTuple):
    """A range of a file without a payload; None: up to the end of the file."""

    file: int
    start: int
    end: int | None


class Left(NamedTuple):
    """What earlier claims have left."""

    unused: Sequence[int]
    """Files to remove."""
    gaps: Sequence[_Gap]


class PayloadSpace:
    """Gives the space of payloads back."""

    def __init__(self, folder: Path, writer: Writer, readers: Readers, *, file_bytes: int) -> None:
        self._folder = folder
        self._writer = writer
        self._readers = readers
        self._freed: deque[Place] = deque()
        self._reads: set[asyncio.Future[None]] = set()
        self.payloads = PayloadWriter(folder, file_bytes=file_bytes)
        """Writes the payloads of this claim."""

    async def look(self) -> Left:
        """Find what earlier claims have left: files that no batch needs, and gaps in others.

        The next synced commit that checks the claim makes it sure: later claims make files of their
        own, which this look has not found. Raises JournalCorruptError, JournalError.
        """
        there = set(files_in(self._folder))
        in_use = {int(file): int(size) for file, size in await self._readers.fetch(_FILES, ())}
        unused = [file for file in there - in_use.keys() if not await self._has(_IS_USED, file)]
        gaps: list[_Gap] = []
        for file in there & in_use.keys():
            taken_bytes = path_of(self._folder, file).stat().st_blocks * _SECTOR_BYTES
            if taken_bytes > in_use[file] + _SLACK_BYTES:
                gaps += await self._gaps_of(file)
        highest = max(there, default=None)
        if highest in unused:
            gaps.append(_Gap(highest, 0, None))
        return Left([file for file in unused if file != highest], gaps)

    async def begin(self, left: Left) -> None:
        """Give back what a look has found, behind a synced commit. Raises JournalUnknownError."""
        self.payloads.close()
        self._freed.clear()
        await self._in_thread(partial(_remove, self._folder, left.unused))
        await self._in_thread(partial(_punch, self._folder, left.gaps))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep the space of payloads while a read goes on that may have found their rows."""
        read: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reads.add(read)
        try:
            yield
        finally:
            self._reads.discard(read)
            read.set_result(None)

    def freed(self, places: Iterable[Place]) -> None:
        """Note the places of payloads whose rows are gone."""
        self._freed.extend(places)

    async def give_back(self) -> bool:
        """Give some of the space back; answer whether there was any.

        Raises JournalCorruptError, JournalError (JournalFencedError, JournalUnknownError).
        """
        if not self._freed:
            return False
        places = [self._freed.popleft() for _ in range(min(_STEP_MAX, len(self._freed)))]
        unused = [file for file in {place.file for place in places} if await self._is_unused(file)]
        await self._writer.execute(_COMMIT, (self._writer.epoch,))
        await self._writer.check_epoch()
        if self._reads:
            await asyncio.wait([*self._reads])
        await self._in_thread(partial(_remove, self._folder, unused))
        gaps = [_Gap(at.file, at.position, at.end) for at in places if at.file not in unused]
        await self._in_thread(partial(_punch, self._folder, gaps))
        return True

    def close(self) -> None:
        """Close the file that takes payloads."""
        self.payloads.close()

    async def _is_unused(self, file: int) -> bool:
        """Whether no row names a file, and none ever will: only the table knows, not an index."""
        if file in (self.payloads.file, max(files_in(self._folder), default=file)):
            return False
        if await self._has(_IS_IN_INDEX, file):  # It is quick.
            return False
        return not await self._has(_IS_USED, file)

    async def _has(self, query: str, file: int) -> bool:
        ((found,),) = await self._readers.fetch(query, (file,))
        return bool(found)

    async def _gaps_of(self, file: int) -> Sequence[_Gap]:
        rows = await self._readers.fetch(_PLACES, (file,))
        ends = [(0, 0), *rows]
        gaps = [_Gap(file, end, start) for (_, end), (start, _) in pairwise(ends) if end < start]
        return [*gaps, _Gap(file, ends[-1][1], None)]

    async def _in_thread(self, change: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(change)
        except OSError as error:
            raise self._writer.dead(
                f"space in {self._folder} cannot be given back: {error}"
            ) from error


def _punch(folder: Path, gaps: Sequence[_Gap]) -> None:
    for file, start, end in dict.fromkeys(gaps):
        try:
            descriptor = os.open(path_of(folder, file), os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # Another step has removed it since: its last payload was deleted.
        try:
            punch(descriptor, start, os.fstat(descriptor).st_size if end is None else end)
        finally:
            os.close(descriptor)


def _remove(folder: Path, files: Iterable[int]) -> None:
    for file in files:
        path_of(folder, file).unlink(missing_ok=True)
