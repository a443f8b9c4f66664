"""The range assignor, by examples and by its promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel_common.ids import TopicPartition
from semel_group.machine.membership.assignment import Target
from semel_group.machine.membership.assignor import preferred_assignor
from semel_group.machine.membership.range_assignor import assign_range

SUBSCRIPTIONS = st.dictionaries(
    st.sampled_from("abcdef"), st.frozensets(st.sampled_from("xyz")), max_size=6
)
NOTHING: Target = {}
TOPICS = st.dictionaries(st.sampled_from("xyz"), st.integers(1, 9))


def numbers(target: Target, member_id: str) -> list[int]:
    return sorted(partition for _, partition in target[member_id])


@pytest.mark.parametrize(
    ("members", "count", "expected"),
    [
        ("a", 4, [[0, 1, 2, 3]]),
        ("ab", 4, [[0, 1], [2, 3]]),
        ("abc", 4, [[0, 1], [2], [3]]),
        ("abc", 5, [[0, 1], [2, 3], [4]]),
        ("abc", 2, [[0], [1], []]),
    ],
)
def test_ranges_follow_the_order_of_member_ids(
    members: str, count: int, expected: list[list[int]]
) -> None:
    target = assign_range(dict.fromkeys(members, frozenset("x")), {"x": count}, NOTHING)
    assert [numbers(target, member_id) for member_id in members] == expected


def test_only_subscribers_of_a_topic_get_its_partitions() -> None:
    target = assign_range({"a": frozenset("x"), "b": frozenset("xy")}, {"x": 2, "y": 2}, NOTHING)
    assert target["a"] == {("x", 0)}
    assert target["b"] == {("x", 1), ("y", 0), ("y", 1)}


def test_topics_with_the_same_subscribers_are_cut_alike() -> None:
    target = assign_range(dict.fromkeys("ab", frozenset("xy")), {"x": 4, "y": 4}, NOTHING)
    for partitions in target.values():
        assert {p for t, p in partitions if t == "x"} == {p for t, p in partitions if t == "y"}


@given(SUBSCRIPTIONS, TOPICS)
def test_every_partition_goes_to_exactly_one_subscriber(
    subscriptions: dict[str, frozenset[str]], topics: dict[str, int]
) -> None:
    target = assign_range(subscriptions, topics, NOTHING)
    given_out = [each for partitions in target.values() for each in partitions]
    subscribed = {topic for wanted in subscriptions.values() for topic in wanted}
    assert target.keys() == subscriptions.keys()
    assert sorted(given_out) == sorted(
        TopicPartition(topic, partition)
        for topic, count in topics.items()
        if topic in subscribed
        for partition in range(count)
    )
    for member_id, partitions in target.items():
        assert {each.topic_id for each in partitions} <= subscriptions[member_id]


@given(SUBSCRIPTIONS, TOPICS)
def test_subscribers_of_a_topic_differ_by_one_partition_at_most(
    subscriptions: dict[str, frozenset[str]], topics: dict[str, int]
) -> None:
    target = assign_range(subscriptions, topics, NOTHING)
    for topic in topics:
        sizes = [
            sum(each.topic_id == topic for each in target[member_id])
            for member_id, wanted in subscriptions.items()
            if topic in wanted
        ]
        assert not sizes or max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("asked_for", "expected"),
    [
        ([], "uniform"),
        (["", ""], "uniform"),
        (["uniform", ""], "uniform"),
        (["uniform", "range"], "range"),
        (["uniform", "range", "uniform"], "uniform"),
    ],
)
def test_the_assignor_that_most_members_ask_for_is_taken(
    asked_for: list[str], expected: str
) -> None:
    assert preferred_assignor(asked_for) == expected
