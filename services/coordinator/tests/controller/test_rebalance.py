"""Rebalancing: everybody gets the same, and no partition moves that need not."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

import pytest
from controller_harness import BROKER, ControllerHarness
from hypothesis import given
from hypothesis import strategies as st

from semel_common.errors import BrokerNotAvailableError
from semel_coordinator.controller.machine import InstanceKey, Move
from semel_coordinator.controller.machine.rebalance import planned
from semel_runtime.cluster.metadata_image import PartitionLeader, Topic

IDS = st.integers(0, 3)
LEADERS = st.builds(PartitionLeader, IDS, st.integers(0, 2), st.none() | IDS).filter(
    lambda each: each.leader_id != each.moving_to
)


def topics_of(leaders: Sequence[Sequence[PartitionLeader]]) -> list[Topic]:
    return [
        Topic(topic_id=f"id-{i}", name=f"topic-{i}", partitions=tuple(partitions))
        for i, partitions in enumerate(leaders)
    ]


def after(topics: Sequence[Topic], brokers: Sequence[int]) -> dict[str, list[int]]:
    """Return who will lead each partition, by topic."""
    led = {topic.topic_id: [p.next_leader_id for p in topic.partitions] for topic in topics}
    for topic_id, partition, broker_id in planned(topics, brokers):
        assert led[topic_id][partition] != broker_id
        led[topic_id][partition] = broker_id
    return led


def is_even(led: Counter[int], brokers: Sequence[int]) -> bool:
    counts = [led[broker] for broker in brokers]
    return sum(counts) == led.total() and max(counts) - min(counts) <= 1


def fewest(topics: Sequence[Topic], brokers: Sequence[int]) -> int:
    """Try every way to be even, and return how many moves the best takes."""
    held = [Counter(p.next_leader_id for p in topic.partitions) for topic in topics]
    shares = []
    for topic in topics:
        even, more = divmod(len(topic.partitions), len(brokers))
        chosen = combinations(brokers, more)
        shares.append([Counter({b: even + (b in some) for b in brokers}) for some in chosen])
    return min(
        sum((h - share).total() for h, share in zip(held, plan, strict=True))
        for plan in product(*shares)
        if is_even(sum(plan, Counter()), brokers)
    )


@given(st.lists(st.lists(LEADERS, max_size=9), max_size=5), st.sets(IDS, min_size=1))
def test_a_plan_is_even_with_the_fewest_moves(
    leaders: list[list[PartitionLeader]], chosen: set[int]
) -> None:
    topics, brokers = topics_of(leaders), sorted(chosen)
    led = after(topics, brokers)
    assert all(is_even(Counter(each), brokers) for each in led.values())
    assert is_even(sum(map(Counter, led.values()), Counter()), brokers)
    assert len(list(planned(topics, brokers))) == fewest(topics, brokers)


@given(
    st.lists(st.lists(LEADERS, max_size=40), max_size=30),
    st.sets(st.integers(0, 12), min_size=1),
)
def test_any_cluster_can_be_even_and_is_so_in_one_way(
    leaders: list[list[PartitionLeader]], chosen: set[int]
) -> None:
    topics, brokers = topics_of(leaders), sorted(chosen)
    led = after(topics, brokers)
    assert all(is_even(Counter(each), brokers) for each in led.values())
    assert is_even(sum(map(Counter, led.values()), Counter()), brokers)
    assert after(topics[::-1], brokers[::-1]) == led


def test_a_move_goes_back_before_a_partition_at_rest_is_moved() -> None:
    moving, resting = PartitionLeader(0, 0, 1), PartitionLeader(1, 0)
    (topic,) = topics_of([[moving, resting, PartitionLeader(1, 0)]])
    assert list(planned([topic], [0, 1])) == [("id-0", 0, 0)]


# -- the machine -------------------------------------------------------------------------------


@pytest.fixture
def controller() -> ControllerHarness:
    harness = ControllerHarness()
    harness.brokers(2)
    return harness


def rebalance(controller: ControllerHarness, *, validate_only: bool = False) -> list[Move]:
    return controller.run(controller.machine.rebalance_partitions(validate_only=validate_only))


def test_a_new_broker_gets_its_share_of_every_topic(controller: ControllerHarness) -> None:
    controller.create("orders", 6)
    controller.create("income", 6)
    controller.register(BROKER, 2)
    moves = rebalance(controller)
    assert [(move.topic, move.leader.moving_to) for move in moves] == [
        ("income", 2),
        ("income", 2),
        ("orders", 2),
        ("orders", 2),
    ]
    assert len(controller.records) == 2
    assert rebalance(controller) == []
    assert controller.records == []


def test_a_plan_can_be_seen_before_it_is_carried_out(controller: ControllerHarness) -> None:
    controller.create("orders", 3)
    controller.register(BROKER, 2)
    planned_moves = rebalance(controller, validate_only=True)
    assert controller.records == []
    assert rebalance(controller) == planned_moves != []


def test_a_decommissioned_broker_ends_with_nothing(controller: ControllerHarness) -> None:
    controller.create("orders", 4)
    controller.run(controller.machine.decommission_instance(InstanceKey(BROKER, 0)))
    moves = rebalance(controller)
    assert {move.leader for move in moves} == {PartitionLeader(0, 0, 1)}
    assert len(moves) == 2


def test_a_move_to_a_decommissioned_broker_goes_back_under_a_new_epoch(
    controller: ControllerHarness,
) -> None:
    controller.create("orders", 2)
    controller.register(BROKER, 2)
    controller.run(controller.machine.decommission_instance(InstanceKey(BROKER, 1)))
    (move,) = rebalance(controller)
    assert move.leader == PartitionLeader(1, 0, 2)
    controller.run(controller.machine.decommission_instance(InstanceKey(BROKER, 1), to=False))
    controller.run(controller.machine.decommission_instance(InstanceKey(BROKER, 2)))
    (back,) = rebalance(controller)
    assert back.leader == PartitionLeader(1, 1)


def test_without_a_broker_nothing_can_be_even(controller: ControllerHarness) -> None:
    controller.run(controller.machine.decommission_instance(InstanceKey(BROKER, 0)))
    controller.decommission_last(InstanceKey(BROKER, 1))
    with pytest.raises(BrokerNotAvailableError, match="all 2 brokers are decommissioned"):
        rebalance(controller)
