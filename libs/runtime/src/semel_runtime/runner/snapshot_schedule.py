"""When a snapshot is due, and how it is cut into pieces.

A snapshot is due when the journal has grown by twice what the last snapshot held (and by a
minimum): so snapshots cost a constant share of all writes, and a start reads at most about three
times the state.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from semel_runtime.journal.contract import Entry, Piece
from semel_runtime.machine import Serde

R = TypeVar("R")

_SLICE_RECORDS = 256
"""Records that are serialized in one go, about half a millisecond."""


class SnapshotPolicy:
    """Counts what came after the last snapshot."""

    def __init__(self, *, records_min: int) -> None:
        self._records_min = records_min
        self._snapshot_records = 0
        self._snapshot_bytes = 0
        self._records = 0
        self._bytes = 0

    def add(self, *, records: int, size_bytes: int) -> None:
        """Note records that were written after the last snapshot."""
        self._records += records
        self._bytes += size_bytes

    def due(self) -> bool:
        """Whether the next snapshot should be taken now."""
        return self._records >= max(self._records_min, 2 * self._snapshot_records)

    def size_bytes_max(self) -> int:
        """Answer what the next snapshot may take on the medium, at the most."""
        return self._snapshot_bytes + self._bytes

    def start(self) -> None:
        """Note that the state was copied: later records come after the snapshot."""
        self._records = 0
        self._bytes = 0

    def took(self, *, records: int, size_bytes: int) -> None:
        """Note the size of the snapshot that is now in place."""
        self._snapshot_records = records
        self._snapshot_bytes = size_bytes


class SnapshotPieces:
    """Serializes entries piece by piece, letting the event loop go on between slices."""

    def __init__(self, *, piece_bytes: int) -> None:
        self._piece_bytes = piece_bytes
        self.records = 0
        self.size_bytes = 0

    async def cut(self, entries: Iterable[tuple[int, R]], serde: Serde[R]) -> AsyncIterator[Piece]:
        """Yield the entries in pieces of about `piece_bytes`."""
        piece: list[Entry] = []
        piece_bytes = 0
        for offset, record in entries:
            data = serde.encode(record)
            piece.append((offset, data))
            piece_bytes += len(data)
            self.records += 1
            if piece_bytes >= self._piece_bytes:
                self.size_bytes += piece_bytes
                yield piece
                piece, piece_bytes = [], 0
            if self.records % _SLICE_RECORDS == 0:
                await asyncio.sleep(0)
        self.size_bytes += piece_bytes
        if piece:
            yield piece
