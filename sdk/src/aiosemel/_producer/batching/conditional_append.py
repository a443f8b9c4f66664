"""Appends on a condition: one batch, taken only if the log ends where its sender thinks.

Such a batch is never joined with other records, and is in flight alone: what went before it is
answered, so that the condition speaks of a log that its sender can know, and what comes after it
has no gap before it if the condition fails.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from aiosemel._producer.batching.record_sizes import (
    Headers,
    check_column,
    check_timestamp,
    pairs_of,
    record_size,
)
from aiosemel._shared.value_checks import check_number
from aiosemel.errors import InvalidRequestError
from semel_common.record_batches.headers import HeaderPairs


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalAppend:
    """The records of one append, and their place."""

    partition: int
    expected_base_offset: int
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    headers: Mapping[int, HeaderPairs]
    """By the positions of the records that have any."""
    timestamps_ms: Sequence[int] | None
    """None: now."""
    size_bytes: int

    @classmethod
    def checked(
        cls,
        values: Sequence[bytes | None],
        *,
        partition: int,
        expected_base_offset: int,
        keys: Sequence[bytes | None] | None,
        headers: Sequence[Headers] | None,
        timestamps_ms: Sequence[int] | None,
    ) -> Self:
        """Look at all that a caller gives; raises TypeError, InvalidRequestError."""
        check_column("values", values)
        if not values:
            raise InvalidRequestError("there is nothing to append")
        if type(partition) is not int:
            raise TypeError(f"partition must be int, not {type(partition).__name__}")
        check_number("expected_base_offset", expected_base_offset)
        columns = (("keys", keys), ("headers", headers), ("timestamps_ms", timestamps_ms))
        for name, column in columns:
            if column is None:
                continue
            check_column(name, column)
            if len(column) != len(values):
                raise InvalidRequestError(f"{len(values)} values have {len(column)} {name}")
        for timestamp_ms in timestamps_ms or ():
            check_timestamp(timestamp_ms)
        pairs = [pairs_of(header) for header in headers] if headers else [()] * len(values)
        return cls(
            partition=partition,
            expected_base_offset=expected_base_offset,
            values=values,
            keys=keys,
            headers={position: each for position, each in enumerate(pairs) if each},
            timestamps_ms=timestamps_ms,
            size_bytes=sum(map(record_size, values, keys or [None] * len(values), pairs)),
        )
