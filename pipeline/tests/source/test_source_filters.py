"""Filters narrow the read, and never lose a record that passes them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from aiosemel import LogRange, TopicPartition
from pyspark_semel.source.filters import narrowing

COLUMN = ("offset",)
NUMBERS = st.integers(-2, 12)
FILTERS = st.one_of(
    NUMBERS.map(lambda n: (EqualTo(COLUMN, n), {n})),
    NUMBERS.map(lambda n: (EqualNullSafe(COLUMN, n), {n})),
    st.lists(NUMBERS).map(lambda ns: (In(COLUMN, tuple(ns)), set(ns))),
    NUMBERS.map(lambda n: (GreaterThan(COLUMN, n), set(range(n + 1, 20)))),
    NUMBERS.map(lambda n: (GreaterThanOrEqual(COLUMN, n), set(range(n, 20)))),
    NUMBERS.map(lambda n: (LessThan(COLUMN, n), set(range(-5, n)))),
    NUMBERS.map(lambda n: (LessThanOrEqual(COLUMN, n), set(range(-5, n + 1)))),
    NUMBERS.map(lambda n: (Not(EqualTo(COLUMN, n)), set(range(-5, 20)) - {n})),
)
LOG = LogRange(topic="t", topic_id="i", partition=0, start_offset=2, end_offset=10)


@given(st.lists(FILTERS))
def test_no_offset_that_passes_is_left_out(filters: list[tuple[Filter, set[int]]]) -> None:
    narrow = narrowing([each for each, _ in filters]).narrow(LOG, {})
    passing = set(range(2, 10)).intersection(*(passes for _, passes in filters))
    assert passing <= set(range(narrow.start_offset, narrow.end_offset)) <= set(range(2, 10))


@pytest.mark.parametrize("each", [EqualTo(COLUMN, 5), In(COLUMN, (5,))])
def test_of_one_offset_nothing_beside_it_is_read(each: Filter) -> None:
    narrow = narrowing([each]).narrow(LOG, {})
    assert (narrow.start_offset, narrow.end_offset) == (5, 6)


@pytest.mark.parametrize(
    ("filters", "admitted"),
    [
        ([], ["a-0", "a-1", "b-0"]),
        ([EqualTo(("topic",), "a")], ["a-0", "a-1"]),
        ([In(("topic",), ("a", "b")), EqualTo(("partition",), 0)], ["a-0", "b-0"]),
        ([In(("partition",), (1, 2)), EqualNullSafe(("topic",), "b")], []),
        ([EqualTo(("value",), b"x"), In(("value",), (b"x",))], ["a-0", "a-1", "b-0"]),
        ([GreaterThan(("partition",), 0), IsNotNull(("topic",))], ["a-0", "a-1", "b-0"]),
        ([GreaterThan(("value", "inner"), 1)], ["a-0", "a-1", "b-0"]),
    ],
)
def test_only_partitions_that_may_pass_are_read(filters: list[Filter], admitted: list[str]) -> None:
    partitions = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
    found = narrowing(filters)
    assert [str(partition) for partition in partitions if found.admits(partition)] == admitted


MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)
MOMENT_MS = 1_767_268_800_000


@pytest.mark.parametrize(
    ("each", "since"),
    [
        (GreaterThanOrEqual(("timestamp",), MOMENT), MOMENT_MS),
        (GreaterThan(("timestamp",), MOMENT + timedelta(microseconds=500)), MOMENT_MS),
        (EqualTo(("timestamp",), MOMENT.astimezone(timezone(timedelta(hours=2)))), MOMENT_MS),
        (In(("timestamp",), (MOMENT, MOMENT + timedelta(hours=1))), MOMENT_MS),
        (In(("timestamp",), ()), None),
        (GreaterThan(("timestamp",), MOMENT.replace(tzinfo=None)), None),
        (LessThan(("timestamp",), MOMENT), None),
    ],
)
def test_a_time_narrows_from_below_only(each: Filter, since: int | None) -> None:
    """Timestamps need not rise: after one that is too late, others may pass."""
    assert narrowing([each]).timestamp_ms == since


@pytest.mark.parametrize("hours", [(0, 1), (1, 0)], ids=["rising", "falling"])
def test_of_two_times_the_later_counts(hours: tuple[int, int]) -> None:
    filters = [GreaterThan(("timestamp",), MOMENT - timedelta(hours=hour)) for hour in hours]
    assert narrowing(filters).timestamp_ms == MOMENT_MS


def test_a_time_before_1970_leaves_out_nothing() -> None:
    long_ago = datetime(1969, 1, 1, tzinfo=UTC)
    assert narrowing([GreaterThan(("timestamp",), long_ago)]).timestamp_ms == 0


def test_records_before_the_first_that_is_late_enough_are_left_out() -> None:
    narrow = narrowing([GreaterThan(("timestamp",), MOMENT)])
    assert narrow.narrow(LOG, {TopicPartition("t", 0): 7}).start_offset == 7
    assert narrow.narrow(LOG, {TopicPartition("t", 0): 12}).start_offset == 10
