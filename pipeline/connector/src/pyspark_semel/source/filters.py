"""Filters that Spark pushes down: they narrow the read, and Spark applies them again. No I/O.

So an unknown filter is no mistake, and a narrowed read must only never lose a record that passes.
Timestamps need not rise with offsets: before the first record that is late enough there is none,
but after one that is too late there may be others that are not. So only lower bounds of timestamps
narrow.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from aiosemel import LogRange, TopicPartition

_MAX_OFFSET = (1 << 63) - 1
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """What can pass the filters; by default, everything."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = 0
    end_offset: int = _MAX_OFFSET
    timestamp_ms: int | None = None
    """Of the earliest record that passes, milliseconds since 1970-01-01 UTC; None: any."""

    def admits(self, partition: TopicPartition) -> bool:
        """Whether a record of a partition may pass."""
        return (self.topics is None or partition.topic in self.topics) and (
            self.partitions is None or partition.partition in self.partitions
        )

    def narrow(self, log_range: LogRange, late_enough: Mapping[TopicPartition, int]) -> LogRange:
        """Return the part of a range that may pass, perhaps an empty one.

        ``late_enough`` has the offsets of the first records that are, as far as they are known.
        """
        late = late_enough.get(log_range.topic_partition, 0)
        start = max(log_range.start_offset, self.start_offset, late)
        end = max(min(log_range.end_offset, self.end_offset), log_range.start_offset)
        return replace(log_range, start_offset=min(start, end), end_offset=end)


def narrowing(filters: Iterable[Filter]) -> Narrowing:
    """Return what passes all of these."""
    found = Narrowing()
    for pushed in filters:
        found = _with(found, pushed)
    return found


def _with(found: Narrowing, each: Filter) -> Narrowing:
    match each:
        case EqualTo((column,), value) | EqualNullSafe((column,), value):
            return _among(found, column, (value,))
        case In((column,), values):
            return _among(found, column, values)
        case GreaterThanOrEqual((column,), value) | GreaterThan((column,), value):
            return _from(found, column, value, inclusive=isinstance(each, GreaterThanOrEqual))
        case LessThanOrEqual(("offset",), int(offset)):
            return _between(found, 0, offset + 1)
        case LessThan(("offset",), int(offset)):
            return _between(found, 0, offset)
        case _:
            return found


def _among(found: Narrowing, column: str, values: Iterable[object]) -> Narrowing:
    match column:
        case "topic":
            return replace(found, topics=_both(found.topics, _all(values, str)))
        case "partition":
            return replace(found, partitions=_both(found.partitions, _all(values, int)))
        case "offset":
            offsets = _all(values, int)
            return _between(found, min(offsets, default=0), max(offsets, default=-1) + 1)
        case "timestamp":
            moments = _all(values, datetime)
            return _since(found, min(moments)) if moments else found
        case _:
            return found


def _from(found: Narrowing, column: str, value: object, *, inclusive: bool) -> Narrowing:
    match column, value:
        case "offset", int(offset):
            return _between(found, offset if inclusive else offset + 1, _MAX_OFFSET)
        case "timestamp", datetime() as moment:
            return _since(found, moment)
        case _:
            return found


def _both(known: frozenset[_T] | None, other: Iterable[_T]) -> frozenset[_T]:
    return frozenset(other) if known is None else known.intersection(other)


def _all(values: Iterable[object], kind: type[_T]) -> frozenset[_T]:
    return frozenset(value for value in values if isinstance(value, kind))


def _between(found: Narrowing, start: int, end: int) -> Narrowing:
    return replace(
        found, start_offset=max(found.start_offset, start), end_offset=min(found.end_offset, end)
    )


def _since(found: Narrowing, moment: datetime) -> Narrowing:
    if moment.tzinfo is None:  # without a time zone, it says no moment
        return found
    at_ms = int(moment.timestamp() * 1000)
    return replace(found, timestamp_ms=max(at_ms, found.timestamp_ms or 0, 0))
