"""How ranges spread over tasks: nothing is lost, nothing is read twice, nothing changes order."""

from hypothesis import given
from hypothesis import strategies as st

from aiosemel import LogRange
from pyspark_semel.source.splits import split


def ranges_of(sizes: list[tuple[int, int]]) -> list[LogRange]:
    return [
        LogRange(topic="t", topic_id="i", partition=n, start_offset=start, end_offset=start + size)
        for n, (start, size) in enumerate(sizes)
    ]


SIZES = st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 500)), max_size=6)
MAYBE = st.none() | st.integers(1, 60)


@given(SIZES, MAYBE, MAYBE)
def test_the_parts_are_the_whole(
    sizes: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    whole = ranges_of(sizes)
    parts = split(whole, min_partitions=min_partitions, max_records=max_records)
    offsets = [(each.partition, o) for each in whole for o in _offsets(each)]
    assert [(each.partition, o) for each in parts for o in _offsets(each)] == offsets
    assert all(each.start_offset < each.end_offset for each in parts)
    assert len(parts) >= min(min_partitions or 0, len(offsets))
    if max_records is not None:
        assert all(len(_offsets(each)) <= max_records for each in parts)


@given(SIZES)
def test_a_partition_is_one_task_unless_more_are_asked_for(sizes: list[tuple[int, int]]) -> None:
    whole = ranges_of(sizes)
    assert split(whole, min_partitions=None, max_records=None) == [
        each for each in whole if _offsets(each)
    ]


def test_the_largest_partitions_are_split() -> None:
    parts = split(ranges_of([(0, 900), (0, 100)]), min_partitions=4, max_records=None)
    assert [(each.partition, each.start_offset, each.end_offset) for each in parts] == [
        (0, 0, 300),
        (0, 300, 600),
        (0, 600, 900),
        (1, 0, 100),
    ]


def _offsets(log_range: LogRange) -> range:
    return range(log_range.start_offset, log_range.end_offset)
