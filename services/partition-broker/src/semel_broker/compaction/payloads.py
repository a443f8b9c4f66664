"""Batches opened for compaction, and put together again without what went.

A payload is checked before it is opened: to seal damaged records with a new CRC would hide the
damage from every reader after that.
"""

from collections.abc import Sequence
from itertools import repeat

from msgspec import Struct
from msgspec.structs import replace

from semel.common.v1.records_pb2 import RecordBatch
from semel_broker.compaction.content import BatchContent, KeyedRecords
from semel_broker.compaction.rules import Cleaning, Kept, Removed, Rewritten
from semel_broker.machine.log.segments import BATCH_OVERHEAD_BYTES
from semel_broker.storage.batch_integrity import header_at
from semel_broker.storage.stored_batches import read_batch, strip
from semel_common.errors import CorruptMessageError, MessageTooLargeError
from semel_common.record_batches.batches import Columns, check_crc, decode_records, replace_records
from semel_runtime.journal.contract import StoredBatch


class ReadBatch(Struct, frozen=True, kw_only=True):
    """A batch as it was read, and what only the machine knows of it."""

    stored: StoredBatch
    aborted: bool
    damaged: bool = False
    """The batch has changed since it was written: compaction believes none of it, and keeps it."""


class Rewrite(Struct, frozen=True, kw_only=True):
    """The change to the store: one atomic step."""

    removed: Sequence[int]
    """The base offsets of batches that go."""
    replaced: Sequence[StoredBatch]
    size_bytes_left: int
    """About how much of these batches stays in the store."""


class OpenedBatch(Struct, frozen=True, kw_only=True):
    """A batch with its records."""

    batch: RecordBatch
    content: BatchContent
    columns: Columns | None
    """None if there are no records to be seen."""


def open_batch(read: ReadBatch, *, payload_max_bytes: int) -> OpenedBatch:
    """Open a batch, unless nothing in it matters or it cannot be opened."""
    batch = RecordBatch() if read.damaged else read_batch(read.stored)
    closed = batch.control or read.aborted or read.damaged
    columns = None if closed else _columns(batch, payload_max_bytes)
    content = BatchContent(
        end_offset=read.stored.base_offset + read.stored.record_count,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        transactional=batch.transactional,
        control=batch.control,
        aborted=read.aborted,
        delete_horizon_ms=batch.delete_horizon_ms,
        records=None if columns is None else _keyed(columns, read.stored.base_offset),
    )
    return OpenedBatch(batch=batch, content=content, columns=columns)


def rewrite(
    cleaning: Cleaning, batches: Sequence[ReadBatch], *, now_ms: int, payload_max_bytes: int
) -> Rewrite:
    """Decide what becomes of the next batches of a pass, and make what takes their places."""
    removed: list[int] = []
    replaced: list[StoredBatch] = []
    size_bytes = 0
    for read in batches:
        opened = open_batch(read, payload_max_bytes=payload_max_bytes)
        match cleaning.decide(opened.content, now_ms=now_ms):
            case Kept():
                size_bytes += _size_bytes(read.stored)
            case Removed():
                removed.append(read.stored.base_offset)
            case Rewritten() as fate:
                replaced.append(_rewritten(read.stored, opened, fate))
                size_bytes += _size_bytes(replaced[-1])
    return Rewrite(removed=removed, replaced=replaced, size_bytes_left=size_bytes)


def _size_bytes(stored: StoredBatch) -> int:
    """Count as the log's segments do."""
    return len(stored.payload) + BATCH_OVERHEAD_BYTES


def _columns(batch: RecordBatch, payload_max_bytes: int) -> Columns | None:
    try:
        payload = batch.payload
        check_crc(batch, payload)
        return decode_records(batch, payload, payload_max_bytes=payload_max_bytes)
    except (CorruptMessageError, MessageTooLargeError):
        return None


def _keyed(columns: Columns, base_offset: int) -> KeyedRecords:
    return KeyedRecords(
        offsets=columns.offsets(base_offset),
        keys=list(repeat(None, len(columns.values))) if columns.keys is None else columns.keys,
        tombstones=[value is None for value in columns.values],
    )


def _rewritten(stored: StoredBatch, opened: OpenedBatch, fate: Rewritten) -> StoredBatch:
    batch = opened.batch
    batch.delete_horizon_ms = fate.delete_horizon_ms
    if fate.positions is None:
        return replace(stored, header=header_at(stored.base_offset, strip(batch)))
    assert opened.columns is not None, "only records that were seen are chosen from"
    replace_records(batch, opened.columns.at(fate.positions))
    payload, max_timestamp_ms = batch.payload, batch.max_timestamp_ms
    return replace(
        stored,
        header=header_at(stored.base_offset, strip(batch)),
        payload=payload,
        max_timestamp_ms=max_timestamp_ms,
    )
