"""The witness of a journal: a small file beside it that says how far acknowledged commits go.

Storage engines end a damaged log where the damage begins, and cannot tell that from a log whose
last write was cut off. The witness can: it is another file, and it is written after each commit is
on disk and before the commit is acknowledged. So a journal that ends below its witness has lost
commits, and a journal that ends above it has lost none that the witness knows of.

The witness is written without a sync of its own. A killed process loses nothing of it, because the
page cache has it. A loss of power may lose its last second, so it is never ahead of the journal.
Two slots are written in turn, each with its own sum: a torn write leaves the other slot.

The file knows no engine: a position in a log is a number of the log, and how far it goes.
"""

import os
import struct
from pathlib import Path
from typing import NamedTuple

import google_crc32c

from semel_runtime.journal.journal_errors import JournalOpenError
from semel_runtime.journal.log.segments import sync_folder

WITNESS_FILE = "journal.end"

_MAGIC = b"SEND"
_SLOT = struct.Struct(">4sQqqQQ")
_CRC = struct.Struct(">I")
_SLOT_BYTES = _SLOT.size + _CRC.size
_SLOT_OFFSETS = (0, 4096)
"""In pages of their own: a disk that loses one page leaves the other."""


class JournalEnd(NamedTuple):
    """How far a journal goes."""

    claim_epoch: int
    next_offset: int
    log_number: int = 0
    """Which log holds the last commit; each number is used once. 0: the commits are in no log."""
    log_position: int = 0
    """How far that log goes."""


class Witness:
    """The file, open for writing. Made by `make` or `open`; used by one thread at a time."""

    def __init__(self, descriptor: int, end: JournalEnd, sequence: int) -> None:
        self._descriptor = descriptor
        self._sequence = sequence
        self.end = end
        """What it says."""

    @classmethod
    def open(cls, folder: Path) -> "Witness | None":
        """Open the witness of a folder; return None if there is none.

        Raises JournalOpenError if no slot of it can be read.
        """
        path = folder / WITNESS_FILE
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            sequence, end = _newest_slot(descriptor, path)
        except JournalOpenError:
            os.close(descriptor)
            raise
        return cls(descriptor, end, sequence)

    @classmethod
    def make(cls, folder: Path, end: JournalEnd) -> "Witness":
        """Make the witness of a folder, durably, in place of one that is there."""
        path = folder / WITNESS_FILE
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        witness = cls(os.open(path, flags, 0o600), end, 0)
        for _ in _SLOT_OFFSETS:
            witness.write(end)
        witness.sync()
        sync_folder(folder)
        return witness

    def read(self) -> JournalEnd:
        """Return what the file says: of two processes, the other may have written it."""
        return max(_read_slots(self._descriptor))[1]

    def write(self, end: JournalEnd) -> None:
        """Say that the journal goes so far: what is durable there, and nothing else."""
        self._sequence += 1
        slot = _SLOT.pack(_MAGIC, self._sequence, *end)
        offset = _SLOT_OFFSETS[self._sequence % 2]
        os.pwrite(self._descriptor, slot + _CRC.pack(google_crc32c.value(slot)), offset)
        self.end = end

    def sync(self) -> None:
        """Let the file outlast a loss of power."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        os.close(self._descriptor)


def read_witness(folder: Path) -> JournalEnd | None:
    """Return what the witness of a folder says; None if there is none. Writes nothing.

    Raises JournalOpenError if no slot of it can be read.
    """
    path = folder / WITNESS_FILE
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _newest_slot(descriptor, path)[1]
    finally:
        os.close(descriptor)


def _newest_slot(descriptor: int, path: Path) -> tuple[int, JournalEnd]:
    found = _read_slots(descriptor)
    if not found:
        raise JournalOpenError(
            f"{path} is damaged: it says how far the journal beside it goes, and neither of its"
            " two copies can be read. If this disk has lost data, the journal may have lost"
            " acknowledged records: put back a copy of the whole folder, or let `semel recover`"
            " take the volume as it is. Nothing was changed."
        )
    return max(found)


def _read_slots(descriptor: int) -> list[tuple[int, JournalEnd]]:
    slots = (_read_slot(descriptor, offset) for offset in _SLOT_OFFSETS)
    return [slot for slot in slots if slot is not None]


def _read_slot(descriptor: int, offset: int) -> tuple[int, JournalEnd] | None:
    data = os.pread(descriptor, _SLOT_BYTES, offset)
    if len(data) < _SLOT_BYTES:
        return None
    slot, crc = data[: _SLOT.size], _CRC.unpack(data[_SLOT.size :])[0]
    if google_crc32c.value(slot) != crc:
        return None
    magic, sequence, *end = _SLOT.unpack(slot)
    return (sequence, JournalEnd(*end)) if magic == _MAGIC else None
