"""Rows of the table `batches` as batches: with the payload in the row, or in a file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from sqlite3 import Row

from semel_runtime.journal.chunks import batch_of, check_types
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.journal.sqlite.payloads.payload_files import Place, read_payloads


def place_of(file: object, position: object, size_bytes: object) -> Place | None:
    """Return the place of three columns; None: the payload is in the row.

    Raises JournalCorruptError.
    """
    if file is None:
        return None
    check_types((file, position, size_bytes), int, int, int)
    return Place(file, position, size_bytes)  # type: ignore[arg-type]  # just checked


def has_places(rows: Iterable[Row]) -> bool:
    """Whether the payload of any row is in a file: the last three columns say so."""
    return any(row[-1] is not None for row in rows)


def stored_batches(folder: Path, rows: Sequence[Row]) -> Sequence[StoredBatch]:
    """Return the batches of rows whose columns come in the order of the table.

    Raises JournalCorruptError, OSError.
    """
    places = [place_of(*row[-3:]) for row in rows]
    payloads = read_payloads(folder, [place for place in places if place is not None])
    batches: list[StoredBatch] = []
    for row, place in zip(rows, places, strict=True):
        payload = row[5] if place is None else next(payloads)
        batches.append(batch_of(row[0], row[1], row[2], row[3], row[4], payload))
    return batches
