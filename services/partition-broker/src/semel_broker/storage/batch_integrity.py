"""Whether a stored batch is the one that was written: each bit that matters is under a CRC.

Theory of operation. A row of the store has a header, a payload and some columns for searches. The
producer's CRC covers the payload and what clients set in the header. A second one, which the broker
writes behind the header, covers the header as it is stored and the offset that the batch was given:
so headers can be trusted where payloads are not read. The columns repeat what the header says.
Headers that an earlier release has written have no second CRC.
"""

import struct

import google_crc32c
from google.protobuf.message import DecodeError

from semel.common.v1.records_pb2 import RecordBatch
from semel_common.record_batches.batches import checksum
from semel_common.wire.messages.wire_format import varint
from semel_runtime.journal.contract import StoredBatch

NEVER = -1
"""The time of a marker in the store: no search by time finds it, because it holds no record."""

_OFFSET = struct.Struct(">q")
_FIXED32 = struct.Struct("<I")
_FIXED32_WIRE_TYPE = 5
_TAG = varint(
    RecordBatch.DESCRIPTOR.fields_by_name["stored_crc32c"].number << 3 | _FIXED32_WIRE_TYPE
)
_FIELD_BYTES = len(_TAG) + _FIXED32.size


def header_at(base_offset: int, header: bytes) -> bytes:
    """Return a serialized header with the CRC of itself and of its offset behind it."""
    return header + _TAG + _FIXED32.pack(_header_crc(base_offset, header))


def what_is_wrong(stored: StoredBatch, partition: int, *, payload_read: bool = True) -> str | None:
    """Return what is wrong with a batch that was read as one of a partition; None: nothing."""
    if stored.partition != partition:
        return f"is that of log {stored.partition}, not of log {partition}"
    try:
        header = RecordBatch.FromString(stored.header)
    except DecodeError:
        return "has a header that cannot be read"
    if header.HasField("stored_crc32c"):
        actual = _header_crc(stored.base_offset, stored.header[:-_FIELD_BYTES])
        if actual != header.stored_crc32c:
            return f"has a header of CRC-32C {actual:#010x}, and was {header.stored_crc32c:#010x}"
    if header.record_count != stored.record_count:
        return f"takes {stored.record_count} offsets, its header says {header.record_count}"
    time_ms = NEVER if header.control else header.max_timestamp_ms
    if time_ms != stored.max_timestamp_ms:
        return f"is of time {stored.max_timestamp_ms}, its header says {time_ms}"
    if payload_read:
        actual = checksum(header, stored.payload)
        if actual != header.crc32c:
            return f"has CRC-32C {actual:#010x}, its header says {header.crc32c:#010x}"
    return None


def _header_crc(base_offset: int, header: bytes) -> int:
    crc: int = google_crc32c.extend(google_crc32c.value(_OFFSET.pack(base_offset)), header)
    return crc
