"""Payloads in files: written and synced once, and read by their places in the tables.

A file takes no more payloads once it is long enough; the next one has the next free number. A
handle never writes to a file that it has not made. So a process that was deposed writes where no
row of a table leads. Appends begin at whole blocks: no later write touches an acknowledged payload.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from semel_common.file_modes import FILE_MODE
from semel_runtime.journal.journal_errors import JournalCorruptError
from semel_runtime.journal.log.segments import sync_folder
from semel_runtime.journal.sqlite.payloads.direct_writes import (
    BLOCK_BYTES,
    BlockBuffer,
    write_past_cache,
)

_PREFIX = "journal.payloads-"


class Place(NamedTuple):
    """Where a payload lies."""

    file: int
    """The number of the file."""
    position: int
    size_bytes: int

    @property
    def end(self) -> int:
        """The position behind it."""
        return self.position + self.size_bytes


class PayloadWriter:
    """Writes payloads for one claim; used by one thread at a time."""

    def __init__(self, folder: Path, *, file_bytes: int) -> None:
        """Begin a file with the first payload, and another one behind so many bytes."""
        self._folder = folder
        self._file_bytes = file_bytes
        self._descriptor = -1
        self._is_direct = False
        self._position = 0
        self._buffer: BlockBuffer | None = None
        self.file: int | None = None
        """The number of the file that takes the next payloads, if there is one."""

    def write(self, payloads: Sequence[bytes]) -> Sequence[Place]:
        """Write and sync payloads, and return their places. Raises OSError."""
        size_bytes = sum(map(len, payloads))
        if self.file is None or self._position + size_bytes > self._file_bytes:
            self.close()
            self._begin_file()
        assert self.file is not None
        places: list[Place] = []
        at = self._position
        for payload in payloads:
            places.append(Place(self.file, at, len(payload)))
            at += len(payload)
        self._write_blocks(payloads, self._position)
        os.fdatasync(self._descriptor)
        self._position = at + -at % BLOCK_BYTES
        return places

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self.file is not None:
            os.close(self._descriptor)
            self.file = None

    def _begin_file(self) -> None:
        number = max(files_in(self._folder), default=0) + 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        while True:
            try:
                self._descriptor = os.open(path_of(self._folder, number), flags, FILE_MODE)
                break
            except FileExistsError:
                number += 1  # Another process has just made it.
        self.file, self._position = number, 0
        os.fchmod(self._descriptor, FILE_MODE)
        self._is_direct = write_past_cache(self._descriptor)
        sync_folder(self._folder)

    def _write_blocks(self, payloads: Sequence[bytes], at: int) -> None:
        self._buffer = self._buffer or BlockBuffer()
        for blocks in self._buffer.blocks(payloads):
            left = blocks
            while left:
                written = self._write_some(left, at)
                if self._is_direct and written % BLOCK_BYTES:
                    self._leave_direct()  # The rest begins within a block.
                left = left[written:]
                at += written

    def _write_some(self, blocks: memoryview, at: int) -> int:
        try:
            return os.pwrite(self._descriptor, blocks, at)
        except OSError as error:
            if error.errno != errno.EINVAL or not self._is_direct:
                raise
        self._leave_direct()  # The disk has larger blocks.
        return os.pwrite(self._descriptor, blocks, at)

    def _leave_direct(self) -> None:
        """Write to this file through the page cache from here on, at any position."""
        self._is_direct = write_past_cache(self._descriptor, wanted=False)


def read_payloads(folder: Path, places: Iterable[Place]) -> Iterator[bytes]:
    """Yield the payloads at some places. Raises JournalCorruptError, OSError."""
    for number, some in groupby(places, key=attrgetter("file")):
        path = path_of(folder, number)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise JournalCorruptError(f"{path} is missing: it has payloads of records") from error
        try:
            for place in some:
                payload = os.pread(descriptor, place.size_bytes, place.position)
                if len(payload) < place.size_bytes:
                    end = place.position + len(payload)
                    raise JournalCorruptError(
                        f"{path} ends at byte {end}, but a payload goes up to byte {place.end}"
                    )
                yield payload
        finally:
            os.close(descriptor)


def files_in(folder: Path) -> Iterator[int]:
    """Yield the numbers of the files that are there."""
    for path in folder.glob(f"{_PREFIX}*"):
        number = path.name.removeprefix(_PREFIX)
        if number.isdecimal():
            yield int(number)


def path_of(folder: Path, number: int) -> Path:
    """Return the path of a file."""
    return folder / f"{_PREFIX}{number}"
