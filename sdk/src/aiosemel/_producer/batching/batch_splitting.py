"""Cutting a batch into smaller ones: the same records, under the same sequences (KIP-126)."""

from collections.abc import Iterator
from dataclasses import replace

from aiosemel._producer.batching.batch import Batch
from aiosemel._producer.batching.record_sizes import Slice, record_size, slices
from semel_common.record_batches.batches import Columns, decode_parts
from semel_common.record_batches.headers import HeaderPairs
from semel_common.record_batches.sequence_numbers import next_sequence


def cut(batch: Batch, limit_bytes: int) -> tuple[Batch, ...]:
    """Return the parts of a batch, each within a limit, or one record that is larger alone."""
    columns = columns_of(batch, batch.headers)
    sizes = list(_sizes(columns))
    parts: list[Batch] = []
    sequence = batch.base_sequence
    for rows in slices([min(size, limit_bytes) for size in sizes], limit_bytes):
        part = _part(batch, columns, rows, limit_bytes)
        part.size_bytes = sum(sizes[rows.start : rows.stop])
        if batch.was_drained:
            part.base_sequence = sequence
            sequence = next_sequence(sequence, part.record_count)
        parts.append(part)
    return tuple(parts)


def columns_of(batch: Batch, headers: dict[int, HeaderPairs]) -> Columns:
    """Return the records of a batch, with these headers."""
    if batch.encoded:
        return replace(decode_parts(batch.encoded, batch.timestamps_ms), headers=headers)
    return Columns(
        values=batch.values,
        keys=batch.keys,
        timestamps_ms=batch.timestamps_ms,
        headers=headers,
    )


def _sizes(columns: Columns) -> Iterator[int]:
    keys = columns.keys or [None] * len(columns.values)
    for position, (value, key) in enumerate(zip(columns.values, keys, strict=True)):
        yield record_size(value, key, columns.headers.get(position, ()))


def _part(batch: Batch, columns: Columns, rows: Slice, limit_bytes: int) -> Batch:
    start, stop, _ = rows
    part = Batch(batch.topic_partition, batch.number, batch.deadline_ms, limit_bytes)
    keys = None if columns.keys is None else [*columns.keys[start:stop]]
    part.keys = keys if keys and any(key is not None for key in keys) else None
    part.values = list(columns.values[start:stop])
    part.timestamps_ms = list(columns.timestamps_ms[start:stop])
    if columns.headers:
        headers = columns.headers
        part.headers = {at - start: headers[at] for at in range(start, stop) if at in headers}
    part.producer_id, part.producer_epoch = batch.producer_id, batch.producer_epoch
    part.is_uncertain = batch.is_uncertain
    part.span = batch.span
    return part
