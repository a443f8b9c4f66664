"""How ranges spread over tasks: nothing is lost, nothing is read twice, nothing changes order."""

from hypothesis import given
from hypothesis import strategies as st

from aiosemel import LogRange
from pyspark_semel.source.splits import Spread, split, tasks


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
    assert [(part.partition, o) for part in parts for o in _offsets(part)] == offsets
    assert all(part.start_offset < part.end_offset for part in parts)
    assert len(parts) >= min(min_partitions or 0, len(offsets))
    if max_records is not None:
        assert all(len(_offsets(part)) <= max_records for part in parts)


@given(SIZES)
def test_a_partition_is_one_task_unless_more_are_asked_for(sizes: list[tuple[int, int]]) -> None:
    whole = ranges_of(sizes)
    assert split(whole, min_partitions=None, max_records=None) == [
        each for each in whole if _offsets(each)
    ]


@given(SIZES, MAYBE, MAYBE, st.integers(1, 600))
def test_small_ranges_share_tasks_and_nothing_else_changes(
    sizes: list[tuple[int, int]],
    min_partitions: int | None,
    max_records: int | None,
    min_offsets: int,
) -> None:
    whole = ranges_of(sizes)
    parts = split(whole, min_partitions=min_partitions, max_records=max_records)
    spread = Spread(min_partitions=min_partitions, max_records=max_records, min_offsets=min_offsets)
    planned = tasks("c", whole, spread)
    assert [each for task in planned for each in task.ranges] == parts
    counts = [sum(len(_offsets(each)) for each in task.ranges) for task in planned]
    if min_partitions is not None:
        assert len(planned) == len(parts)
        return
    for task, count in zip(planned, counts, strict=True):
        assert len(task.ranges) == 1 or count < min_offsets + max(
            len(_offsets(each)) for each in task.ranges
        )
        assert max_records is None or count <= max_records
        assert all(
            len(task.ranges) == 1 or len(_offsets(each)) < min_offsets for each in task.ranges
        )
    if max_records is None:
        neighbours = zip(planned, planned[1:], counts, counts[1:], strict=False)
        for left, right, first, second in neighbours:
            large = min_offsets <= max(first, second)
            assert large, f"{left} and {right} could be one task"


def test_many_small_partitions_are_one_task() -> None:
    whole = ranges_of([(0, 10)] * 64)
    assert len(tasks("c", whole, Spread(min_offsets=1_000))) == 1
    assert len(tasks("c", whole, Spread(min_offsets=100))) == 7
    assert len(tasks("c", whole, Spread(min_offsets=1))) == 64
    assert len(tasks("c", whole, Spread(min_offsets=1_000, min_partitions=3))) == 64


def test_the_largest_partitions_are_split() -> None:
    parts = split(ranges_of([(0, 900), (0, 100)]), min_partitions=4, max_records=None)
    assert [(part.partition, part.start_offset, part.end_offset) for part in parts] == [
        (0, 0, 300),
        (0, 300, 600),
        (0, 600, 900),
        (1, 0, 100),
    ]


def _offsets(log_range: LogRange) -> range:
    return range(log_range.start_offset, log_range.end_offset)
