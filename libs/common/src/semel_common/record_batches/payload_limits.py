"""Bounds on the size of an opened payload.

Producers check them before they send, and every reader checks them again: the broker stores a batch
without opening its payload, so any payload may lie in a log. The number of records is bounded by
``RecordBatch.record_count``, which brokers bound by ``batch_records_max``.
"""

OPENED_MAX_BYTES = 16 << 20
"""The largest payload after decompression, in bytes: producers make no larger one, and brokers open
no larger one."""
READABLE_MAX_BYTES = 64 << 20
"""The largest payload that a consumer opens unless its options say otherwise, in bytes: earlier
releases of the SDK could make payloads larger than OPENED_MAX_BYTES."""
HEADERS_PER_RECORD_MAX = 1_024
"""The most headers of one record."""
HEADERS_MAX = 1 << 20
"""The most headers of all records of a batch together."""
HEADER_OVERHEAD_BYTES = OPENED_MAX_BYTES // HEADERS_MAX
"""What producers count for a header beside its name and its value, in bytes: so a batch that keeps
OPENED_MAX_BYTES keeps HEADERS_MAX."""
