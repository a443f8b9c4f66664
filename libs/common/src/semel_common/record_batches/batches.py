"""Record batches: columns of records, sealed with a CRC; opened again by readers.

The broker stores the payload unchanged. ``records.proto`` defines the fields of the header and the
bytes that the CRC covers.
"""

import struct
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from itertools import pairwise

from semel.common.v1.records_pb2 import (
    Codec,
    ControlRecord,
    RecordBatch,
    RecordColumns,
    RecordHeaders,
    Records,
)
from semel_common.errors import CorruptMessageError, InvalidConfigError, MessageTooLargeError
from semel_common.record_batches.compression import compress, decompress
from semel_common.record_batches.crc import crc32c
from semel_common.record_batches.encoded_records import KEYS_TAG, EncodedRecords
from semel_common.record_batches.headers import HeaderPairs
from semel_common.record_batches.payload_limits import (
    HEADERS_MAX,
    HEADERS_PER_RECORD_MAX,
    READABLE_MAX_BYTES,
)
from semel_common.wire.messages.message_pieces import Pieces, tag, within
from semel_common.wire.messages.message_scan import Bound, Field, ScanError, Shape, check_message
from semel_common.wire.messages.wire_format import LENGTH_DELIMITED

_CHECKED_HEADER = struct.Struct(">iqqiBBq")
_EMPTY_KEY = KEYS_TAG + b"\0"
_PAYLOAD = tag(RecordBatch, "payload")
_TRANSACTIONAL = 1
_CONTROL = 2
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_UNSCANNED_MAX_BYTES = 1 << 20
_UNSCANNED_RECORD_MAX_BYTES = 128
"""A payload of up to 1 MiB, and 128 bytes more for each record that its header says, is parsed
without a scan: so many bytes hold too few fields to do harm."""
_FIELDS_PER_RECORD = 8
_FIELDS_BESIDE = 64
"""A payload has fewer fields than this for each record, and fewer beside them."""
_RECORD_HEADERS: Shape = {
    RecordHeaders.HEADERS_FIELD_NUMBER << 3 | LENGTH_DELIMITED: Field(
        "headers", Bound(HEADERS_PER_RECORD_MAX)
    )
}
_RECORD_HEADERS_FIELDS_MAX = 4 * HEADERS_PER_RECORD_MAX + 64
"""Fields of the headers of one record, with some of a later release."""
_EMPTY_HEADER_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The records of one batch, as columns of the same length.

    ``keys`` is None when no record has a key. ``timestamps_ms`` are milliseconds since 1970-01-01
    UTC. ``headers`` has an entry only for the positions that have headers. ``offset_deltas`` are
    the offsets of the records from that of the batch on, ascending; None when they are dense.
    """

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    timestamps_ms: Sequence[int]
    headers: dict[int, HeaderPairs]
    offset_deltas: Sequence[int] | None = None

    def offsets(self, base_offset: int) -> Sequence[int]:
        """Return the offset of each record of a batch at ``base_offset``."""
        if self.offset_deltas is None:
            return range(base_offset, base_offset + len(self.values))
        return [base_offset + delta for delta in self.offset_deltas]

    def at(self, positions: Sequence[int]) -> "Columns":
        """Return the records at some positions, ascending; their offsets stay the same."""
        deltas = self.offsets(0)
        return Columns(
            values=[self.values[each] for each in positions],
            keys=None if self.keys is None else [self.keys[each] for each in positions],
            timestamps_ms=[self.timestamps_ms[each] for each in positions],
            headers={
                position: self.headers[each]
                for position, each in enumerate(positions)
                if each in self.headers
            },
            offset_deltas=[deltas[each] for each in positions],
        )


def encode_records(columns: Columns) -> bytes:
    """Serialize columns as the message ``Records``."""
    records = Records(base_timestamp_ms=columns.timestamps_ms[0])
    records.absent_values.extend(_put(columns.values, records.values))
    if columns.keys is not None:
        records.absent_keys.extend(_put(columns.keys, records.keys))
    records.timestamp_deltas_ms.extend(_deltas(columns.timestamps_ms))
    for position, pairs in sorted(columns.headers.items()):
        _put_headers(records.headers.add(), position, pairs)
    records.offset_deltas.extend(columns.offset_deltas or ())
    return records.SerializeToString()


def encode_parts(parts: Sequence[EncodedRecords], timestamps_ms: Sequence[int]) -> Pieces:
    """Return the pieces of what ``encode_records`` returns for the same records."""
    keys: list[bytes] = []
    if any(part.keys is not None for part in parts):
        keys = [
            _EMPTY_KEY * part.record_count if part.keys is None else part.keys for part in parts
        ]
    between, after = Records(), Records(base_timestamp_ms=timestamps_ms[0])
    start = 0
    for part in parts:
        absent = range(part.record_count) if part.keys is None else part.absent_keys
        if keys:
            between.absent_keys.extend([start + each for each in absent])
        after.absent_values.extend([start + absent_value for absent_value in part.absent_values])
        start += part.record_count
    after.timestamp_deltas_ms.extend(_deltas(timestamps_ms))
    values = [part.values for part in parts]
    return (*keys, between.SerializeToString(), *values, after.SerializeToString())


def decode_parts(parts: Sequence[EncodedRecords], timestamps_ms: Sequence[int]) -> Columns:
    """Return as columns what ``encode_parts`` writes."""
    batch = RecordBatch(record_count=sum(part.record_count for part in parts))
    return decode_opened(batch, b"".join(encode_parts(parts, timestamps_ms)))


def newest(timestamps_ms: Sequence[int]) -> int:
    """Return the newest time of a batch; most have one only, which is cheap to see."""
    return timestamps_ms[0] if _is_one(timestamps_ms) else max(timestamps_ms)


def decode_records(
    batch: RecordBatch,
    payload: bytes | None = None,
    *,
    payload_max_bytes: int = READABLE_MAX_BYTES,
) -> Columns:
    """Open the payload of a batch. The caller passes the payload, because reading it makes a copy.

    Raises CorruptMessageError when it is not what the header says, MessageTooLargeError when it is
    over ``payload_max_bytes`` once it is decompressed.
    """
    whole = batch.payload if payload is None else payload
    return decode_opened(batch, open_payload(batch, whole, payload_max_bytes=payload_max_bytes))


def open_payload(
    batch: RecordBatch, payload: bytes, *, payload_max_bytes: int = READABLE_MAX_BYTES
) -> bytes:
    """Return the payload of a batch as it was before it was compressed; raises as above."""
    try:
        return decompress(payload, batch.codec, size_max_bytes=payload_max_bytes)
    except MessageTooLargeError as error:
        raise MessageTooLargeError(
            f"batch at offset {batch.base_offset}: {error.message}", **error.details
        ) from error
    except InvalidConfigError:
        raise  # The codec is not installed here: nothing is known of the batch.
    except Exception as error:
        raise _unreadable(batch, error) from error


def decode_opened(batch: RecordBatch, opened: bytes) -> Columns:
    """Read what ``open_payload`` returned; raises as ``decode_records``."""
    records = _parse(batch, opened)
    base, deltas = records.base_timestamp_ms, records.timestamp_deltas_ms
    count = len(records.values)
    return Columns(
        values=_with_absent(records.values, records.absent_values),
        keys=_with_absent(records.keys, records.absent_keys) if records.keys else None,
        timestamps_ms=[base + delta for delta in deltas] if deltas else [base] * count,
        headers=_headers(batch, records) if records.headers else {},
        offset_deltas=list(records.offset_deltas) or None,
    )


def position_without_key(batch: RecordBatch, opened: bytes) -> int | None:
    """Return the position of the first record without a key in what ``open_payload`` returned.

    None: every record has a key. Raises as ``decode_records``, which costs more.
    """
    records = _parse(batch, opened)
    if not records.keys:
        return 0
    return min(records.absent_keys, default=None)


def _parse(batch: RecordBatch, opened: bytes) -> RecordColumns:
    """Parse a payload whose headers stay closed; the number of its fields is bounded before."""
    count = batch.record_count
    try:
        if len(opened) > _UNSCANNED_MAX_BYTES + _UNSCANNED_RECORD_MAX_BYTES * count:
            check_message(opened, {}, elements_max=_FIELDS_PER_RECORD * count + _FIELDS_BESIDE)
        records = RecordColumns.FromString(opened)
    except ScanError as error:
        raise CorruptMessageError(
            f"batch at offset {batch.base_offset} says {count} records and {error}"
        ) from error
    except Exception as error:
        raise _unreadable(batch, error) from error
    wrong = _what_is_wrong(count, records)
    if wrong is not None:
        raise CorruptMessageError(f"batch at offset {batch.base_offset} {wrong}")
    return records


def _headers(batch: RecordBatch, records: RecordColumns) -> dict[int, HeaderPairs]:
    """Open the headers of all records; they are counted before messages are made of them."""
    opened: dict[int, HeaderPairs] = {}
    left = HEADERS_MAX
    for written in records.headers:
        try:
            if len(written) > _EMPTY_HEADER_BYTES * HEADERS_PER_RECORD_MAX:
                check_message(written, _RECORD_HEADERS, elements_max=_RECORD_HEADERS_FIELDS_MAX)
            of_record = RecordHeaders.FromString(written)
        except ScanError as error:
            raise _too_many_headers(batch, HEADERS_PER_RECORD_MAX, "one record") from error
        except Exception as error:
            raise _unreadable(batch, error) from error
        if len(of_record.headers) > HEADERS_PER_RECORD_MAX:
            raise _too_many_headers(batch, HEADERS_PER_RECORD_MAX, "one record")
        left -= len(of_record.headers)
        if left < 0:
            raise _too_many_headers(batch, HEADERS_MAX, "all records")
        opened[of_record.position] = _decode_headers(of_record)
    if opened and not 0 <= min(opened) <= max(opened) < len(records.values):
        raise CorruptMessageError(
            f"batch at offset {batch.base_offset} holds {len(records.values)} records and headers"
            f" at {min(opened)} to {max(opened)}"
        )
    return opened


def _too_many_headers(batch: RecordBatch, maximum: int, of: str) -> MessageTooLargeError:
    return MessageTooLargeError(
        f"batch at offset {batch.base_offset} has more than {maximum} headers of {of}",
        headers_max=maximum,
    )


def _unreadable(batch: RecordBatch, error: Exception) -> CorruptMessageError:
    return CorruptMessageError(
        f"payload of the batch at offset {batch.base_offset} cannot be read: {error}"
    )


def _what_is_wrong(record_count: int, records: RecordColumns) -> str | None:
    """Return why the columns do not fit one another, or the header."""
    count = len(records.values)
    offsets = records.offset_deltas
    if (len(offsets) or record_count) != count:
        return f"says {len(offsets) or record_count} records and holds {count}"
    if len(records.headers) > count:
        return f"holds {count} records and headers of {len(records.headers)}"
    for name, column in (("keys", records.keys), ("timestamps", records.timestamp_deltas_ms)):
        if column and len(column) != count:
            return f"holds {count} records and {len(column)} {name}"
    for name, positions in (
        ("absent values", records.absent_values),
        ("absent keys", records.absent_keys),
    ):
        if positions and not 0 <= min(positions) <= max(positions) < count:
            return f"holds {count} records and {name} at {min(positions)} to {max(positions)}"
    if offsets and not (
        offsets[0] >= 0
        and offsets[-1] < record_count
        and all(before < after for before, after in pairwise(offsets))
    ):
        return f"takes {record_count} offsets, and those of its records do not rise within them"
    times = records.timestamp_deltas_ms
    base = records.base_timestamp_ms
    if times and not _INT64_MIN <= base + min(times) <= base + max(times) <= _INT64_MAX:
        return f"holds timestamps from {base + min(times)} to {base + max(times)}"
    return None


def seal(
    columns: Columns,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    codec: Codec.ValueType = Codec.CODEC_UNSPECIFIED,
) -> RecordBatch:
    """Make a batch of columns, with its CRC; the broker gives it its offset."""
    payload = compress(encode_records(columns), codec)
    batch = RecordBatch(
        record_count=len(columns.values),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        max_timestamp_ms=newest(columns.timestamps_ms),
        codec=codec,
    )
    batch.crc32c = checksum(batch, payload)
    batch.payload = payload
    return batch


def written(header: RecordBatch, payload: Pieces) -> Pieces:
    """Write a batch that is given without its payload; it gets its CRC.

    The same bytes as those of the whole batch: the payload is the last of what producers set.
    """
    header.crc32c = checksum(header, *payload)
    return (header.SerializeToString(), *within(_PAYLOAD, payload))


def replace_records(batch: RecordBatch, columns: Columns) -> None:
    """Put those of a batch's records into it that are left of it; it takes the same offsets."""
    payload = compress(encode_records(columns), batch.codec)
    batch.max_timestamp_ms = newest(columns.timestamps_ms)
    batch.payload = payload
    batch.crc32c = checksum(batch, payload)


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


def checksum(batch: RecordBatch, *payload: bytes) -> int:
    """Compute the CRC-32C of a batch; see ``RecordBatch.crc32c``.

    ``payload`` is the payload of the batch, or its pieces. Callers have it already, and a second
    read would make a copy.
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
    return crc32c(header, *payload)


def check_crc(batch: RecordBatch, payload: bytes) -> None:
    """Raise CorruptMessageError unless the CRC fits; ``payload`` is the batch's, as above."""
    actual = checksum(batch, payload)
    if actual != batch.crc32c:
        raise CorruptMessageError(
            f"CRC-32C of the batch is {actual:#010x}, its header says {batch.crc32c:#010x}"
        )


def _deltas(timestamps_ms: Sequence[int]) -> list[int]:
    """Return what to add to the first time for each record; nothing if all have that one."""
    if _is_one(timestamps_ms):
        return []
    base = timestamps_ms[0]
    return [each - base for each in timestamps_ms]


def _is_one(timestamps_ms: Sequence[int]) -> bool:
    return timestamps_ms.count(timestamps_ms[0]) == len(timestamps_ms)


def _put(column: Sequence[bytes | None], field: MutableSequence[bytes]) -> list[int]:
    """Put a column into a field, and return which items are absent. Most have none, so try."""
    try:
        field.extend(column)  # type: ignore[arg-type]  # an absent one is refused
    except TypeError:
        del field[:]
        field.extend([b"" if item is None else item for item in column])
        return [i for i, item in enumerate(column) if item is None]
    return []


def _with_absent(column: Sequence[bytes], absent: Sequence[int]) -> list[bytes | None]:
    items: list[bytes | None] = list(column)
    for position in absent:
        items[position] = None
    return items


def _put_headers(record: RecordHeaders, position: int, pairs: HeaderPairs) -> None:
    """Write headers field by field: messages made from arguments, and copied, cost three times."""
    record.position = position
    for key, value in pairs:
        header = record.headers.add()
        header.key = key
        if value is not None:
            header.value = value


def _decode_headers(record: RecordHeaders) -> HeaderPairs:
    return tuple((h.key, h.value if h.HasField("value") else None) for h in record.headers)
