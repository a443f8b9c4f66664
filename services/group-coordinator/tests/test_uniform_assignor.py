"""The uniform assignor, by examples and by its promises."""

from collections import Counter
from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel_common.ids import TopicPartition
from semel_group.machine.membership.assignment import Target
from semel_group.machine.membership.uniform_assignor import assign_uniform

NOTHING: Target = {}
TOPICS = st.dictionaries(st.sampled_from("xyz"), st.integers(1, 9))
SUBSCRIPTIONS = st.dictionaries(
    st.sampled_from("abcdef"), st.frozensets(st.sampled_from("xyz")), max_size=6
)
ALIKE = st.sets(st.sampled_from("abcdef"), min_size=1).map(
    lambda members: dict.fromkeys(sorted(members), frozenset("xyz"))
)


def sizes(target: Target) -> dict[str, int]:
    return {member_id: len(partitions) for member_id, partitions in target.items()}


def unevenness(target: Target) -> int:
    return sum(size * size for size in sizes(target).values())


def moved(before: Target, after: Target) -> int:
    """Return how many partitions were taken from a member that is still there."""
    return sum(len(before[each] - after[each]) for each in before.keys() & after.keys())


@pytest.mark.parametrize(("members", "count"), [("a", 4), ("ab", 4), ("abc", 4), ("abc", 2)])
def test_shares_differ_by_one_at_most(members: str, count: int) -> None:
    target = assign_uniform(dict.fromkeys(members, frozenset("x")), {"x": count}, NOTHING)
    assert max(sizes(target).values()) - min(sizes(target).values()) <= 1
    assert sum(sizes(target).values()) == count


def test_many_small_topics_are_spread_too() -> None:
    topics = dict.fromkeys("uvwxyz", 1)
    target = assign_uniform(dict.fromkeys("abc", frozenset(topics)), topics, NOTHING)
    assert sizes(target) == {"a": 2, "b": 2, "c": 2}


def test_who_comes_takes_only_the_surplus() -> None:
    wanted = frozenset("x")
    before = assign_uniform(dict.fromkeys("bcd", wanted), {"x": 12}, NOTHING)
    after = assign_uniform(dict.fromkeys("abcd", wanted), {"x": 12}, before)
    assert sizes(after) == {"a": 3, "b": 3, "c": 3, "d": 3}
    assert moved(before, after) == 3


def test_what_a_member_leaves_behind_is_all_that_moves() -> None:
    wanted = frozenset("x")
    before = assign_uniform(dict.fromkeys("abcd", wanted), {"x": 12}, NOTHING)
    after = assign_uniform(dict.fromkeys("abd", wanted), {"x": 12}, before)
    assert sizes(after) == {"a": 4, "b": 4, "d": 4}
    assert moved(before, after) == 0


def test_new_partitions_go_where_there_is_least() -> None:
    subscriptions = {"a": frozenset("x"), "b": frozenset("x")}
    before = assign_uniform(subscriptions, {"x": 3}, NOTHING)
    after = assign_uniform(subscriptions, {"x": 6}, before)
    assert sizes(after) == {"a": 3, "b": 3}
    assert moved(before, after) == 0


def test_a_chain_evens_out_what_no_single_move_can() -> None:
    # c may only have y, all of which b holds; only if a's x goes to b, one of b's y can go to c.
    subscriptions = {"a": frozenset("x"), "b": frozenset("xy"), "c": frozenset("y")}
    before = {
        "a": frozenset(TopicPartition("x", each) for each in range(3)),
        "b": frozenset({TopicPartition("y", 0), TopicPartition("y", 1)}),
        "c": frozenset[TopicPartition](),
    }
    after = assign_uniform(subscriptions, {"x": 3, "y": 2}, before)
    assert sorted(sizes(after).values()) == [1, 2, 2]


def test_no_member_keeps_partitions_that_are_gone_or_not_wanted_any_more() -> None:
    before = {"a": frozenset({TopicPartition("x", 5), TopicPartition("y", 0)})}
    after = assign_uniform({"a": frozenset("x")}, {"x": 1, "y": 1}, before)
    assert after == {"a": {("x", 0)}}


def test_no_members_get_nothing() -> None:
    assert assign_uniform({}, {"x": 3}, NOTHING) == {}


@given(SUBSCRIPTIONS, TOPICS, SUBSCRIPTIONS, TOPICS)
def test_every_partition_goes_to_exactly_one_subscriber(
    first: dict[str, frozenset[str]],
    first_topics: dict[str, int],
    subscriptions: dict[str, frozenset[str]],
    topics: dict[str, int],
) -> None:
    before = assign_uniform(first, first_topics, NOTHING)
    target = assign_uniform(subscriptions, topics, before)
    assert target.keys() == subscriptions.keys()
    wanted = {topic for subscription in subscriptions.values() for topic in subscription}
    assert sorted(each for partitions in target.values() for each in partitions) == sorted(
        TopicPartition(topic, partition)
        for topic, count in topics.items()
        if topic in wanted
        for partition in range(count)
    )
    for member_id, partitions in target.items():
        assert {topic for topic, _ in partitions} <= subscriptions[member_id]
    assert assign_uniform(subscriptions, topics, target) == target


@given(ALIKE, TOPICS, ALIKE)
def test_members_that_want_the_same_move_only_what_must_move(
    first: dict[str, frozenset[str]], topics: dict[str, int], then: dict[str, frozenset[str]]
) -> None:
    before = assign_uniform(first, topics, NOTHING)
    after = assign_uniform(then, topics, before)
    total = sum(topics.values())
    share, longer = divmod(total, len(then))
    assert sorted(sizes(after).values(), reverse=True) == [share + 1] * longer + [share] * (
        len(then) - longer
    )
    kept = sorted((len(before[each]) for each in before.keys() & then.keys()), reverse=True)
    quotas = [share + 1] * longer + [share] * (len(then) - longer)
    least = sum(max(0, had - quota) for had, quota in zip(kept, quotas, strict=False))
    assert moved(before, after) == least


@given(
    st.dictionaries(st.sampled_from("abc"), st.frozensets(st.sampled_from("xy")), max_size=3),
    st.dictionaries(st.sampled_from("xy"), st.integers(1, 3)),
)
def test_no_assignment_is_more_even(
    subscriptions: dict[str, frozenset[str]], topics: dict[str, int]
) -> None:
    target = assign_uniform(subscriptions, topics, NOTHING)
    assert unevenness(target) == _least_unevenness(subscriptions, topics)


def _least_unevenness(subscriptions: Mapping[str, frozenset[str]], topics: dict[str, int]) -> int:
    """Try every assignment."""
    choices = [
        [member_id for member_id, wanted in subscriptions.items() if topic in wanted]
        for topic, count in topics.items()
        for _ in range(count)
    ]
    every = product(*(choice for choice in choices if choice))
    return min(sum(size * size for size in Counter(each).values()) for each in every)
