"""How ranges of logs spread over tasks: ``minPartitions``, ``maxRecordsPerPartition``. No I/O."""

from collections.abc import Iterable
from dataclasses import replace
from heapq import heapify, heapreplace
from itertools import pairwise

from aiosemel import LogRange


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
