"""Columns of records to be sent: looked at once, then cut and parted by rows.

What most records do not have, headers and times of their own, costs those nothing: it is None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from aiosemel._producer.sizes import Headers, check_timestamp, headers_size, row_sizes
from aiosemel.errors import InvalidRequestError
from semel_common.headers import HeaderPairs


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
        """Look at all that a caller gives; raises TypeError, InvalidRequestError."""
        if timestamp_ms is not None:
            check_timestamp(timestamp_ms)
        if timestamps_ms is not None:
            if timestamp_ms is not None:
                raise InvalidRequestError("both timestamp_ms and timestamps_ms are given")
            _check_length(values, "timestamps_ms", timestamps_ms)
            for each in timestamps_ms:
                check_timestamp(each)
        sizes = row_sizes(values, keys)
        pairs = None
        if headers is not None:
            _check_length(values, "headers", headers)
            pairs = [tuple(each) for each in headers]
            sizes = [size + headers_size(each) for size, each in zip(sizes, pairs, strict=True)]
        return cls(
            values=values,
            keys=keys,
            headers=pairs,
            timestamps_ms=timestamps_ms,
            timestamp_ms=timestamp_ms,
            sizes=sizes,
        )

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


def _check_length(values: Sequence[object], name: str, column: Sequence[object]) -> None:
    if len(column) != len(values):
        raise InvalidRequestError(f"{len(values)} values have {len(column)} {name}")
