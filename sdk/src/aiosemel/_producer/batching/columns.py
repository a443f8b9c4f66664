"""Columns of records to be sent: looked at once, then cut and parted by rows.

What most records do not have, headers and times of their own, costs those nothing: it is None.
Columns that encode themselves are not even looked at row by row.
"""

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Self, TypeAlias, TypeGuard

from aiosemel._producer.batching.record_sizes import (
    RECORD_OVERHEAD_BYTES,
    Headers,
    Slice,
    check_column,
    check_timestamp,
    headers_size,
    pairs_of,
    row_sizes,
    slices,
    slices_by,
)
from aiosemel.errors import InvalidRequestError
from aiosemel.types.encoded_column import EncodedColumn
from semel_common.record_batches.encoded_records import KEYS_TAG, VALUES_TAG, EncodedRecords
from semel_common.record_batches.headers import HeaderPairs


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """Records as columns, all of the same length."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    headers: Sequence[HeaderPairs] | None
    timestamps_ms: Sequence[int] | None
    timestamp_ms: int | None
    """Of all rows, where ``timestamps_ms`` is None; None: now."""
    sizes: Sequence[int]
    """In bytes."""

    @classmethod
    def checked(
        cls,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None,
        headers: Sequence[Headers] | None,
        timestamp_ms: int | None,
        timestamps_ms: Sequence[int] | None,
    ) -> Self:
        """Look at each row; the times are looked at. Raises TypeError, InvalidRequestError."""
        sizes = row_sizes(values, keys)
        pairs = None
        if headers is not None:
            _check_length(values, "headers", headers)
            pairs = [pairs_of(header) for header in headers]
            sizes = [size + headers_size(each) for size, each in zip(sizes, pairs, strict=True)]
        return cls(
            values=values,
            keys=keys,
            headers=pairs,
            timestamps_ms=timestamps_ms,
            timestamp_ms=timestamp_ms,
            sizes=sizes,
        )

    def slices(self, size_max_bytes: int) -> Iterator[Slice]:
        """Cut into as few slices as possible; raises MessageTooLargeError for a row alone."""
        return slices(self.sizes, size_max_bytes)

    def cut(self, start: int, stop: int) -> Self:
        """Return the rows ``start`` to ``stop`` - 1."""
        return type(self)(
            values=self.values[start:stop],
            keys=None if self.keys is None else self.keys[start:stop],
            headers=None if self.headers is None else self.headers[start:stop],
            timestamps_ms=None if self.timestamps_ms is None else self.timestamps_ms[start:stop],
            timestamp_ms=self.timestamp_ms,
            sizes=self.sizes[start:stop],
        )

    def at(self, rows: Sequence[int]) -> Self:
        """Return some rows, in the order given."""
        keys, headers, times = self.keys, self.headers, self.timestamps_ms
        return type(self)(
            values=[self.values[row] for row in rows],
            keys=None if keys is None else [keys[row] for row in rows],
            headers=None if headers is None else [headers[row] for row in rows],
            timestamps_ms=None if times is None else [times[row] for row in rows],
            timestamp_ms=self.timestamp_ms,
            sizes=[self.sizes[row] for row in rows],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRows:
    """Records as columns that encode themselves."""

    values: EncodedColumn
    keys: EncodedColumn | None
    timestamps_ms: Sequence[int] | None
    timestamp_ms: int | None
    """As of ``RowColumns``."""

    def slices(self, size_max_bytes: int) -> Iterator[Slice]:
        """Cut as ``RowColumns`` of the same rows."""
        return slices_by(self._size, len(self.values), size_max_bytes)

    def cut(self, start: int, stop: int) -> EncodedRecords:
        """Return the rows ``start`` to ``stop`` - 1, encoded."""
        values, keys = self.values, self.keys
        return EncodedRecords(
            record_count=stop - start,
            values=values.encode(VALUES_TAG, start, stop),
            absent_values=values.absent(start, stop),
            keys=None if keys is None else keys.encode(KEYS_TAG, start, stop),
            absent_keys=() if keys is None else keys.absent(start, stop),
        )

    def times(self, start: int, stop: int, timestamp_ms: int) -> Sequence[int]:
        """Return the times of these rows; ``timestamp_ms`` is that of rows without."""
        if self.timestamps_ms is None:
            return [timestamp_ms] * (stop - start)
        return self.timestamps_ms[start:stop]

    def _size(self, start: int, stop: int) -> int:
        keys_bytes = 0 if self.keys is None else self.keys.size_bytes(start, stop)
        rows_bytes = self.values.size_bytes(start, stop) + keys_bytes
        return rows_bytes + RECORD_OVERHEAD_BYTES * (stop - start)


Column: TypeAlias = Sequence[bytes | None] | EncodedColumn
Rows: TypeAlias = RowColumns | EncodedRows


def checked(
    values: Column,
    *,
    keys: Column | None,
    headers: Sequence[Headers] | None,
    timestamp_ms: int | None,
    timestamps_ms: Sequence[int] | None,
) -> Rows:
    """Look at all that a caller gives; raises TypeError, InvalidRequestError."""
    check_column("values", values)
    columns = (("keys", keys), ("headers", headers), ("timestamps_ms", timestamps_ms))
    for name, column in columns:
        if column is not None:
            check_column(name, column)
    _check_times(values, timestamp_ms, timestamps_ms)
    if _encodes(values) and (keys is None or _encodes(keys)):
        if headers is not None:
            raise InvalidRequestError(
                "encoded columns cannot have headers: leave headers out, or give lists"
            )
        if keys is not None:
            _check_length(values, "keys", keys)
        return EncodedRows(
            values=values, keys=keys, timestamp_ms=timestamp_ms, timestamps_ms=timestamps_ms
        )
    if _encodes(values) or _encodes(keys):
        raise InvalidRequestError("only one of values and keys is encoded: encode both, or neither")
    return RowColumns.checked(
        values,  # type: ignore[arg-type]  # it does not encode itself
        keys=keys,  # type: ignore[arg-type]  # it does not encode itself
        headers=headers,
        timestamp_ms=timestamp_ms,
        timestamps_ms=timestamps_ms,
    )


def _encodes(column: Column | None) -> TypeGuard[EncodedColumn]:
    """Whether a column encodes itself; to look at a whole Protocol costs as much as many rows."""
    return hasattr(column, "size_bytes")


def _check_times(
    values: Sized, timestamp_ms: int | None, timestamps_ms: Sequence[int] | None
) -> None:
    if timestamp_ms is not None:
        check_timestamp(timestamp_ms)
    if timestamps_ms is not None:
        if timestamp_ms is not None:
            raise InvalidRequestError(
                "both timestamp_ms and timestamps_ms are given: give one of them"
            )
        _check_length(values, "timestamps_ms", timestamps_ms)
        for timestamp in timestamps_ms:
            check_timestamp(timestamp)


def _check_length(values: Sized, name: str, column: Sized) -> None:
    if len(column) != len(values):
        raise InvalidRequestError(f"{len(values)} values have {len(column)} {name}")
