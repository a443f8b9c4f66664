"""Records as the bytes of a row, and the bounds of a row, for all engines.

Records come back only if no bit has changed.
"""

import struct
from collections.abc import Sequence

import google_crc32c
from google.protobuf.message import DecodeError

from semel.common.journal.v1.chunk_pb2 import Chunk, SnapshotChunk, SnapshotEntry
from semel_runtime.journal.contract import Entry, Piece, StoredBatch
from semel_runtime.journal.journal_errors import JournalCorruptError, JournalTooLargeError

_KEY = struct.Struct(">qq")


def checksum(first: int, second: int, data: bytes) -> int:
    """Return the CRC-32C of a row: its two key columns, then its data."""
    crc: int = google_crc32c.extend(google_crc32c.value(_KEY.pack(first, second)), data)
    return crc


def pack_records(records: Sequence[bytes]) -> bytes:
    """Serialize the records of one append."""
    return Chunk(records=records).SerializeToString()


def check_types(row: Sequence[object], *types: type) -> None:
    """Raise JournalCorruptError if a row has other types than its table.

    A bit that flips in a file can make text of a number; the engine itself does not look.
    """
    if tuple(map(type, row)) != types:
        found = ", ".join(type(value).__name__ for value in row)
        raise JournalCorruptError(f"a row is damaged: it holds {found}")


def unpack_records(base_offset: int, record_count: int, crc32c: int, data: bytes) -> list[Entry]:
    """Return the records of one append with their offsets; raise JournalCorruptError."""
    check_types((base_offset, record_count, crc32c, data), int, int, int, bytes)
    if checksum(base_offset, record_count, data) != crc32c:
        raise _corrupt(base_offset, record_count, "are damaged: the CRC-32C differs")
    try:
        records = Chunk.FromString(data).records[:]  # A slice is a list: quicker to walk.
    except DecodeError as error:
        raise _corrupt(base_offset, record_count, "are no chunk") from error
    if len(records) != record_count:
        raise _corrupt(base_offset, record_count, f"are {len(records)} in their chunk")
    return list(enumerate(records, base_offset))


def _corrupt(base_offset: int, record_count: int, what: str) -> JournalCorruptError:
    return JournalCorruptError(f"records {base_offset} to {base_offset + record_count - 1} {what}")


def pack_piece(piece: Piece, *, size_bytes_max: int) -> bytes:
    """Serialize one piece of a snapshot; raise JournalTooLargeError."""
    entries = [SnapshotEntry(offset=offset, record=record) for offset, record in piece]
    data = SnapshotChunk(entries=entries).SerializeToString()
    check_size(len(data), size_bytes_max=size_bytes_max)
    return data


def unpack_piece(snapshot: int, number: int, crc32c: int, data: bytes) -> list[Entry]:
    """Return the entries of one piece of a snapshot; raise JournalCorruptError."""
    check_types((snapshot, number, crc32c, data), int, int, int, bytes)
    where = f"piece {number} of snapshot {snapshot}"
    if checksum(snapshot, number, data) != crc32c:
        raise JournalCorruptError(f"{where} is damaged: the CRC-32C differs")
    try:
        entries = SnapshotChunk.FromString(data).entries
    except DecodeError as error:
        raise JournalCorruptError(f"{where} is no chunk") from error
    return [(entry.offset, entry.record) for entry in entries]


def check_size(
    size_bytes: int, batches: Sequence[StoredBatch] = (), *, size_bytes_max: int
) -> None:
    """Raise JournalTooLargeError for a write of so many bytes, with its batches."""
    size_bytes += sum(batch.size_bytes for batch in batches)
    if size_bytes > size_bytes_max:
        raise JournalTooLargeError(size_bytes=size_bytes, size_bytes_max=size_bytes_max)


_BATCH_TYPES = (int, int, int, int, bytes, bytes)


def batch_of(
    partition: int,
    base_offset: int,
    record_count: int,
    max_timestamp_ms: int,
    header: bytes,
    payload: bytes,
) -> StoredBatch:
    """Return the record batch of a row, whose columns come in this order.

    Raises JournalCorruptError.
    """
    numbers = (partition, base_offset, record_count, max_timestamp_ms)
    check_types((*numbers, header, payload), *_BATCH_TYPES)
    return StoredBatch(
        partition=partition,
        base_offset=base_offset,
        record_count=record_count,
        max_timestamp_ms=max_timestamp_ms,
        header=header,
        payload=payload,
    )
