"""The two files of a log: of a fixed size, allocated at once, written in turn and again.

A write into an allocated file changes nothing but its content, so a sync writes no more than that.
A file is written again only once the tables have all of its frames durably.

Files are named by the number of their log: a claim begins a new log in new files, and removes those
of older logs. So a process that was deposed writes into files that no start reads any more.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from semel_common.file_modes import FILE_MODE

_PREFIX = "journal.log-"
FILES = 2
"""Of a log."""
_FULL = {errno.ENOSPC, errno.EDQUOT}


class Segments:
    """The files of one log, for one writer; used by one thread at a time.

    `make` comes first. A frame is written only if `takes` says so.
    """

    def __init__(self, folder: Path, number: int, *, file_bytes: int) -> None:
        self._folder = folder
        self._number = number
        self._file_bytes = file_bytes
        self._descriptors: list[int] = []
        self._ends = [0] * FILES
        """Of the journal, with the last frame of each file."""
        self._current = 0
        self._position = 0

    @property
    def is_made(self) -> bool:
        """Whether the files are there."""
        return bool(self._descriptors)

    def make(self) -> bool:
        """Make the files, durably; answer whether the disk has the room. Raises OSError."""
        with ExitStack() as undo:
            try:
                descriptors = [self._make(name, undo) for name in self._names()]
            except OSError as error:
                if error.errno in _FULL:
                    return False
                raise
            sync_folder(self._folder)
            undo.pop_all()
        self._descriptors = descriptors
        return True

    def takes(self, size_bytes: int, *, stored: int) -> bool:
        """Whether a frame of that size has room, if the tables have all below the offset `stored`.

        A frame that finds none fits once the tables have everything, if it fits into a file at all.
        """
        return self.is_made and self._place(size_bytes, stored) is not None

    def write(self, frame: bytes, *, next_offset: int, stored: int) -> None:
        """Write and sync a frame, with which the journal ends at `next_offset`. Raises OSError."""
        place = self._place(len(frame), stored)
        assert place is not None, "a frame is written only where there is room"
        self._current, at = place
        view = memoryview(frame)
        while view:
            written = os.pwrite(self._descriptors[self._current], view, at)
            view, at = view[written:], at + written
        os.fdatasync(self._descriptors[self._current])
        self._ends[self._current], self._position = next_offset, at

    def close(self) -> None:
        """Close the files. Idempotent."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _place(self, size_bytes: int, stored: int) -> tuple[int, int] | None:
        if self._position + size_bytes <= self._file_bytes:
            return self._current, self._position
        other = (self._current + 1) % FILES
        if self._ends[other] <= stored and size_bytes <= self._file_bytes:
            return other, 0
        return None

    def _names(self) -> list[str]:
        return [f"{_PREFIX}{self._number}-{n}" for n in range(FILES)]

    def _make(self, name: str, undo: ExitStack) -> int:
        path = self._folder / name
        path.unlink(missing_ok=True)  # A process may still have it, and write to it.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, FILE_MODE)
        undo.callback(path.unlink)
        undo.callback(os.close, descriptor)
        os.fchmod(descriptor, FILE_MODE)
        os.posix_fallocate(descriptor, 0, self._file_bytes)
        os.fsync(descriptor)
        return descriptor


def files_of(folder: Path, number: int) -> Iterator[Path]:
    """Yield the files of a log that are there."""
    for path, found in _all_files(folder):
        if found == number:
            yield path


def remove_logs(folder: Path, *, below: int) -> None:
    """Remove the files of all logs with a lower number. Raises OSError."""
    for path, number in _all_files(folder):
        if number < below:
            path.unlink(missing_ok=True)


def _all_files(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in sorted(folder.glob(f"{_PREFIX}*")):
        number = path.name.removeprefix(_PREFIX).partition("-")[0]
        if number.isdecimal():
            yield path, int(number)


def sync_folder(folder: Path) -> None:
    """Let the names of files outlast a loss of power. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
