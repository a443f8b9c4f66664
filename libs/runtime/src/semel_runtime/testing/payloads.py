"""Batches that open to more than their size suggests, as a hostile client seals them."""

import sys

from semel.common.v1.records_pb2 import Codec, RecordBatch, RecordHeaders, Records
from semel_common.record_batches.batches import Columns, checksum, encode_records
from semel_common.wire.messages.message_pieces import tag, within

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

EMPTY_HEADERS = 7_000_000
"""With so many, a batch of 1.4 KB opens to 14 MB."""


def header_bomb(key: bytes | None = None) -> RecordBatch:
    """Return a batch of one record, with millions of empty headers in 1.4 KB."""
    record = Records(values=[b"x"], keys=[] if key is None else [key])
    headers = tag(RecordHeaders, "headers") + b"\0"
    pieces = within(tag(Records, "headers"), (headers * EMPTY_HEADERS,))
    return _sealed(
        zstd.compress(b"".join((record.SerializeToString(), *pieces))), max_timestamp_ms=1
    )


def undeclared(columns: Columns) -> RecordBatch:
    """Return a batch whose zstd frame does not declare how large it is."""
    options: dict[int, int] = {zstd.CompressionParameter.content_size_flag: 0}
    return _sealed(
        zstd.compress(encode_records(columns), options=options),
        record_count=len(columns.values),
        max_timestamp_ms=max(columns.timestamps_ms),
    )


def _sealed(payload: bytes, *, max_timestamp_ms: int, record_count: int = 1) -> RecordBatch:
    batch = RecordBatch(
        record_count=record_count,
        max_timestamp_ms=max_timestamp_ms,
        codec=Codec.CODEC_ZSTD,
        payload=payload,
    )
    batch.crc32c = checksum(batch, payload)
    return batch
