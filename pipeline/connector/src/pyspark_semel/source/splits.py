"""How ranges of logs spread over tasks: ``minPartitions``, ``minOffsetsPerTask`` and so on. No I/O.

A task costs Spark tens of milliseconds, whatever it reads. So small ranges share one, while a range
that is large enough has a task of its own, and a very large one has several.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from itertools import pairwise

from aiosemel import LogRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one task reads; Spark pickles it."""

    cluster_id: str
    """The cluster that was planned for: no other one may answer the task."""
    ranges: tuple[LogRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What a user has said of tasks."""

    min_partitions: int | None = None
    """At least so many tasks, if there are as many offsets; then no ranges share a task."""
    max_records: int | None = None
    """At most so many offsets for a task."""
    min_offsets: int = 1
    """Ranges share a task until it has so many offsets."""


def tasks(cluster_id: str, ranges: Iterable[LogRange], spread: Spread) -> list[Task]:
    """Return the same offsets in the same order, spread over tasks; none is empty."""
    parts = split(ranges, min_partitions=spread.min_partitions, max_records=spread.max_records)
    shares = (
        _shares(parts, spread) if spread.min_partitions is None else ((part,) for part in parts)
    )
    return [Task(cluster_id=cluster_id, ranges=tuple(share)) for share in shares]


def _shares(parts: Iterable[LogRange], spread: Spread) -> Iterator[Sequence[LogRange]]:
    """Put neighbours together until there are enough offsets, and never too many."""
    share: list[LogRange] = []
    offsets = 0
    for part in parts:
        size = _size(part)
        fits = spread.max_records is None or offsets + size <= spread.max_records
        if share and (offsets >= spread.min_offsets or size >= spread.min_offsets or not fits):
            yield share
            share, offsets = [], 0
        share.append(part)
        offsets += size
    if share:
        yield share


def split(
    ranges: Iterable[LogRange], *, min_partitions: int | None, max_records: int | None
) -> list[LogRange]:
    """Return the same offsets in the same order, as one range for each task; no range is empty.

    A range has at most ``max_records`` offsets. There are at least ``min_partitions`` of them, if
    there are as many offsets; it is the largest that are split for it.
    """
    whole = [each for each in ranges if _size(each)]
    parts = [1 if max_records is None else -(-_size(each) // max_records) for each in whole]
    if min_partitions is not None:
        _raise_to(min_partitions, whole, parts)
    return [part for each, count in zip(whole, parts, strict=True) for part in _cut(each, count)]


def _size(log_range: LogRange) -> int:
    return log_range.end_offset - log_range.start_offset


def _raise_to(minimum: int, whole: list[LogRange], parts: list[int]) -> None:
    """Split the range with the largest parts once more, until there are enough parts."""
    total = sum(parts)
    largest = [(-_size(each) / parts[at], at) for at, each in enumerate(whole)]
    heapify(largest)
    while total < minimum and largest and parts[at := largest[0][1]] < _size(whole[at]):
        parts[at] += 1
        total += 1
        heapreplace(largest, (-_size(whole[at]) / parts[at], at))


def _cut(log_range: LogRange, count: int) -> Iterable[LogRange]:
    start, size = log_range.start_offset, _size(log_range)
    cuts = [start + size * part // count for part in range(count + 1)]
    return (replace(log_range, start_offset=begin, end_offset=end) for begin, end in pairwise(cuts))
