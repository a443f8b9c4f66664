"""How much one micro-batch reads."""

from hypothesis import given
from hypothesis import strategies as st

from aiosemel import TopicPartition
from pyspark_semel.source.limits import Patience, cap, size

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 5))
RANGES = st.dictionaries(
    PARTITIONS, st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 20)), min_size=1
)


@given(RANGES, st.integers(1, 1 << 21))
def test_a_limit_holds_and_starves_no_partition(
    ranges: dict[TopicPartition, tuple[int, int]], maximum: int
) -> None:
    begins = {each: begin for each, (begin, _) in ranges.items()}
    ends = {each: begin + length for each, (begin, length) in ranges.items()}
    capped = cap(begins, ends, maximum)
    assert size(begins, capped) <= max(maximum, len(ranges))
    for each, end in ends.items():
        assert begins[each] <= capped[each] <= end
        assert (capped[each] > begins[each]) == (end > begins[each])


@given(RANGES, st.integers(1, 1 << 21))
def test_repeated_steps_read_everything_in_the_end(
    ranges: dict[TopicPartition, tuple[int, int]], maximum: int
) -> None:
    begins = {each: begin for each, (begin, _) in ranges.items()}
    ends = {each: begin + min(length, 50 * maximum) for each, (begin, length) in ranges.items()}
    for _ in range(50 * len(ranges) * 20):
        if begins == ends:
            return
        begins = dict(cap(begins, ends, maximum))
    raise AssertionError(begins)


def test_partitions_share_a_limit_by_their_sizes() -> None:
    a, b, c = (TopicPartition("t", number) for number in range(3))
    ends = {a: 900, b: 90, c: 10}
    assert cap({a: 0, b: 0, c: 10}, ends, 100) == {a: 90, b: 9, c: 10}


def test_what_is_within_the_limit_is_read_whole() -> None:
    a = TopicPartition("t", 0)
    assert cap({a: 5}, {a: 10}, 5) == {a: 10}


def test_patience_ends_with_enough_offsets_or_with_time() -> None:
    patience = Patience(max_delay=3.0).begun(100.0)
    assert patience.holds(9, 102.9, minimum=10)
    assert not patience.holds(10, 100.0, minimum=10)
    assert not patience.holds(0, 103.0, minimum=10)
    assert patience.begun(103.0).holds(9, 105.9, minimum=10)


def test_there_is_no_patience_before_a_first_micro_batch() -> None:
    assert not Patience(max_delay=1e9).holds(1, 0.0, minimum=10)
