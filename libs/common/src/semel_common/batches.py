"""Record batches: columns of records, sealed with a CRC; opened again by readers.

The broker stores the payload as it came. What the header fields mean, and what the CRC covers, is
said once in ``records.proto``.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c

from semel.common.v1.records_pb2 import (
    Codec,
    ControlRecord,
    Header,
    RecordBatch,
    RecordHeaders,
    Records,
)
from semel_common.compression import compress, decompress
from semel_common.errors import CorruptMessageError
from semel_common.headers import HeaderPairs

_CHECKED_HEADER = struct.Struct(">iqqiBBq")
_TRANSACTIONAL = 1
_CONTROL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The records of one batch, as columns of the same length.

    ``keys`` is None when no record has a key. ``timestamps_ms`` are milliseconds since 1970-01-01
    UTC. ``headers`` has an entry only for the positions that have headers.
    """

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    timestamps_ms: Sequence[int]
    headers: dict[int, HeaderPairs]


def encode_records(columns: Columns) -> bytes:
    """Serialize columns as the message ``Records``."""
    records = Records(base_timestamp_ms=columns.timestamps_ms[0])
    records.absent_values.extend(_absent(columns.values))
    records.values.extend(_present(columns.values) if records.absent_values else columns.values)  # type: ignore[arg-type]  # none is absent
    if columns.keys is not None:
        records.absent_keys.extend(_absent(columns.keys))
        records.keys.extend(_present(columns.keys) if records.absent_keys else columns.keys)  # type: ignore[arg-type]  # none is absent
    base = columns.timestamps_ms[0]
    if columns.timestamps_ms.count(base) != len(columns.timestamps_ms):
        records.timestamp_deltas_ms.extend([t - base for t in columns.timestamps_ms])
    for position, pairs in sorted(columns.headers.items()):
        records.headers.append(_encode_headers(position, pairs))
    return records.SerializeToString()


def decode_records(batch: RecordBatch) -> Columns:
    """Open the payload of a batch.

    Raises CorruptMessageError when it is not what the header says.
    """
    try:
        records = Records.FromString(decompress(batch.payload, batch.codec))
    except Exception as error:
        raise CorruptMessageError(
            f"payload of the batch at offset {batch.base_offset} cannot be read: {error}"
        ) from error
    count = batch.record_count
    deltas = records.timestamp_deltas_ms
    if (
        len(records.values) != count
        or (records.keys and len(records.keys) != count)
        or (deltas and len(deltas) != count)
    ):
        raise CorruptMessageError(
            f"batch at offset {batch.base_offset} says {count} records"
            f" and holds {len(records.values)}"
        )
    base = records.base_timestamp_ms
    return Columns(
        values=_with_absent(records.values, records.absent_values),
        keys=_with_absent(records.keys, records.absent_keys) if records.keys else None,
        timestamps_ms=[base + delta for delta in deltas] if deltas else [base] * count,
        headers={h.position: _decode_headers(h) for h in records.headers},
    )


def seal(
    columns: Columns,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    codec: Codec.ValueType = Codec.CODEC_UNSPECIFIED,
    into: RecordBatch | None = None,
) -> RecordBatch:
    """Make a batch of columns, with its CRC; the broker gives it its offset.

    ``into`` is an empty batch to fill, within the request that carries it: putting a batch into a
    request copies its payload.
    """
    batch = RecordBatch() if into is None else into
    payload = compress(encode_records(columns), codec)
    batch.record_count = len(columns.values)
    batch.producer_id = producer_id
    batch.producer_epoch = producer_epoch
    batch.base_sequence = base_sequence
    batch.transactional = transactional
    batch.max_timestamp_ms = max(columns.timestamps_ms)
    batch.codec = codec
    batch.payload = payload
    batch.crc32c = checksum(batch, payload)
    return batch


def control_batch(
    *,
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> RecordBatch:
    """Make the batch of a marker; the broker gives it its offset."""
    record = ControlRecord(committed=committed, coordinator_epoch=coordinator_epoch)
    batch = RecordBatch(
        record_count=1,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        max_timestamp_ms=timestamp_ms,
        payload=record.SerializeToString(),
    )
    batch.crc32c = checksum(batch, batch.payload)
    return batch


def checksum(batch: RecordBatch, payload: bytes) -> int:
    """Compute the CRC-32C of a batch; see ``RecordBatch.crc32c``.

    ``payload`` is the batch's: whoever needs it has read it already, and reading copies it.
    """
    flags = _TRANSACTIONAL * batch.transactional | _CONTROL * batch.control
    header = _CHECKED_HEADER.pack(
        batch.record_count,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        flags,
        batch.codec,
        batch.max_timestamp_ms,
    )
    crc: int = google_crc32c.extend(google_crc32c.value(header), payload)
    return crc


def check_crc(batch: RecordBatch, payload: bytes) -> None:
    """Raise CorruptMessageError unless the CRC fits; ``payload`` is the batch's, as above."""
    actual = checksum(batch, payload)
    if actual != batch.crc32c:
        raise CorruptMessageError(
            f"CRC-32C of the batch is {actual:#010x}, its header says {batch.crc32c:#010x}"
        )


def _absent(column: Sequence[bytes | None]) -> list[int]:
    return [i for i, item in enumerate(column) if item is None] if None in column else []


def _present(column: Sequence[bytes | None]) -> list[bytes]:
    return [b"" if item is None else item for item in column]


def _with_absent(column: Sequence[bytes], absent: Sequence[int]) -> list[bytes | None]:
    items: list[bytes | None] = list(column)
    for position in absent:
        items[position] = None
    return items


def _encode_headers(position: int, pairs: HeaderPairs) -> RecordHeaders:
    return RecordHeaders(
        position=position, headers=[Header(key=key, value=value) for key, value in pairs]
    )


def _decode_headers(record: RecordHeaders) -> HeaderPairs:
    return tuple((h.key, h.value if h.HasField("value") else None) for h in record.headers)
