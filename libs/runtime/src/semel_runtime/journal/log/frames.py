"""Appends as frames of a log, and the frames of a file that may be torn, damaged or of another log.

A frame is, all numbers big-endian: a magic of 8 bytes, its size and its CRC-32C; then the mark of
its log, its claim epoch, the offset of its first record, the counts of records and of batches, and
the chunk of its records with the chunk's own CRC-32C; then the batches' fields, headers and
payloads. Zeros fill it up to a multiple of 8 bytes. The CRC covers the size and all after itself.

Recycled files hold older frames behind the newest one. Their offsets are lower.

Pure.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import google_crc32c
from msgspec import Struct

from semel_runtime.journal.contract import StoredBatch

_MAGIC = b"SEMELLOG"
_PREFIX = struct.Struct(">8sII")
_SIZE = struct.Struct(">I")
_HEAD = struct.Struct(">QqqqIII")
_BATCH = struct.Struct(">qqqqII")
ALIGNMENT = 8


class LogIdentity(NamedTuple):
    """Which log a frame belongs to. Each claim begins a log of its own."""

    number: int
    """Of the log: each is higher than those before it in its folder. 0: there is none."""
    mark: int
    """By chance, 64 bits: a frame of another folder's log of that number has another one."""


class LoggedAppend(Struct, frozen=True, kw_only=True, dict=True):
    """One append, as it lies in the log and as the tables get it."""

    base_offset: int
    record_count: int
    crc32c: int
    """Of the chunk: see `semel_runtime.journal.chunks`."""
    data: bytes
    """The chunk of its records."""
    batches: Sequence[StoredBatch]

    @property
    def next_offset(self) -> int:
        """Where the journal ends with it."""
        return self.base_offset + self.record_count

    @cached_property
    def size_bytes(self) -> int:
        """How long its frame is."""
        size = _PREFIX.size + _HEAD.size + len(self.data) + _BATCH.size * len(self.batches)
        size += sum(batch.size_bytes for batch in self.batches)
        return size + -size % ALIGNMENT


def encode(append: LoggedAppend, *, mark: int, claim_epoch: int) -> bytes:
    """Return the frame of an append."""
    head = _HEAD.pack(
        mark,
        claim_epoch,
        append.base_offset,
        append.record_count,
        append.crc32c,
        len(append.data),
        len(append.batches),
    )
    parts = [head, append.data]
    parts += [_BATCH.pack(*_fields(batch)) for batch in append.batches]
    for batch in append.batches:
        parts += (batch.header, batch.payload)
    size = append.size_bytes
    parts.append(bytes(size - _PREFIX.size - sum(map(len, parts))))
    body = b"".join(parts)
    return _PREFIX.pack(_MAGIC, size, _crc(size, body)) + body


def frames_of(data: bytes, *, mark: int, start: int) -> Iterator[LoggedAppend]:
    """Yield the whole frames of a log in a file that end after an offset, as they lie there.

    What is torn or damaged is passed over: the caller knows which offsets have to be there.
    """
    view, at = memoryview(data), 0
    while (at := _next_frame(data, at)) >= 0:
        size = _size_if_whole(view, at)
        if size == 0:
            at += ALIGNMENT
            continue
        append = _decoded(view[at + _PREFIX.size : at + size], mark=mark, start=start)
        if append is not None:
            yield append
        at += size


def _fields(batch: StoredBatch) -> tuple[int, ...]:
    return (
        batch.partition,
        batch.base_offset,
        batch.record_count,
        batch.max_timestamp_ms,
        len(batch.header),
        len(batch.payload),
    )


def _crc(size: int, body: bytes | memoryview) -> int:
    crc: int = google_crc32c.extend(google_crc32c.value(_SIZE.pack(size)), bytes(body))
    return crc


def _next_frame(data: bytes, at: int) -> int:
    """Return where the next frame may begin; -1: nowhere."""
    while (at := data.find(_MAGIC, at)) >= 0 and at % ALIGNMENT:
        at += 1
    return at


def _size_if_whole(view: memoryview, at: int) -> int:
    """Return the size of the frame at a position; 0: there is none that is whole."""
    if at + _PREFIX.size + _HEAD.size > len(view):
        return 0
    _, size, crc = _PREFIX.unpack_from(view, at)
    if size < _PREFIX.size + _HEAD.size or at + size > len(view):
        return 0
    return size if _crc(size, view[at + _PREFIX.size : at + size]) == crc else 0


def _decoded(body: memoryview, *, mark: int, start: int) -> LoggedAppend | None:
    """Return the append of a whole frame; None if it is of another log, or ends before `start`."""
    found, _, base_offset, record_count, crc32c, data_bytes, count = _HEAD.unpack_from(body)
    if found != mark or base_offset + record_count <= start:
        return None
    table = _HEAD.size + data_bytes
    fields = [_BATCH.unpack_from(body, table + _BATCH.size * n) for n in range(count)]
    sizes = [header + payload for *_, header, payload in fields]
    ends = accumulate(sizes, initial=table + _BATCH.size * count)
    return LoggedAppend(
        base_offset=base_offset,
        record_count=record_count,
        crc32c=crc32c,
        data=bytes(body[_HEAD.size : table]),
        batches=[_batch(body, at, each) for at, each in zip(ends, fields, strict=False)],
    )


def _batch(body: memoryview, at: int, fields: Sequence[int]) -> StoredBatch:
    partition, base_offset, record_count, max_timestamp_ms, header, payload = fields
    return StoredBatch(
        partition=partition,
        base_offset=base_offset,
        record_count=record_count,
        max_timestamp_ms=max_timestamp_ms,
        header=bytes(body[at : at + header]),
        payload=bytes(body[at + header : at + header + payload]),
    )
