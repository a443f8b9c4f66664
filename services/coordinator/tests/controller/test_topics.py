"""Topics: names, numbers, and who leads their partitions."""

from collections import Counter

import pytest
from controller_harness import BROKER, ControllerHarness

from semel_common.errors import (
    BrokerNotAvailableError,
    InvalidPartitionsError,
    InvalidTopicError,
    ThrottlingQuotaExceededError,
    TopicAlreadyExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel_coordinator.controller.machine import ControllerLimits
from semel_coordinator.controller.machine.placement import spread
from semel_coordinator.controller.machine.records import TopicDeletedRecord, TopicRecord
from semel_coordinator.controller.machine.topic_names import check_topic_name


@pytest.fixture
def controller() -> ControllerHarness:
    harness = ControllerHarness()
    harness.brokers(3)
    return harness


def test_a_new_topic_has_the_partitions_that_were_asked_for(controller: ControllerHarness) -> None:
    topic = controller.create("orders", 4)
    assert controller.records == [TopicRecord(version=5, topic=topic)]
    assert len(topic.partitions) == 4
    assert {leader.leader_epoch for leader in topic.partitions} == {0}
    assert controller.image.topics == (topic,)


def test_a_topic_without_a_number_gets_the_default() -> None:
    controller = ControllerHarness(ControllerLimits(num_partitions=6))
    controller.brokers(1)
    assert len(controller.create("orders").partitions) == 6


def test_validating_a_topic_creates_nothing(controller: ControllerHarness) -> None:
    topic = controller.create("orders", 4, validate_only=True)
    assert len(topic.partitions) == 4
    assert controller.records == []
    assert controller.image.topics == ()


def test_a_topic_needs_a_broker() -> None:
    controller = ControllerHarness()
    with pytest.raises(BrokerNotAvailableError, match=r"no broker has registered .*'orders'"):
        controller.create("orders")


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "A-Z_0.9", "...", "_", "x" * 249])
def test_names_that_kafka_takes_are_taken(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "is empty"),
        (".", "cannot be named"),
        ("..", "cannot be named"),
        ("x" * 250, "has 250 characters: at most 249"),
        ("a b", "'a b' has a character other than"),
        ("ä", "has a character other than"),
        ("a\n", "has a character other than"),
        ("a/b", "has a character other than"),
    ],
)
def test_names_that_kafka_refuses_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(InvalidTopicError, match=complaint):
        check_topic_name(name)


def test_a_name_is_given_once(controller: ControllerHarness) -> None:
    controller.create("orders")
    with pytest.raises(TopicAlreadyExistsError, match="'orders' exists already"):
        controller.create("orders")


def test_dot_and_underscore_count_as_the_same_character(controller: ControllerHarness) -> None:
    controller.create("pizza.orders")
    with pytest.raises(InvalidTopicError, match=r"'pizza_orders' collides with 'pizza\.orders'"):
        controller.create("pizza_orders")


def test_a_topic_made_again_under_an_old_name_is_another_topic(
    controller: ControllerHarness,
) -> None:
    old = controller.create("orders")
    controller.delete("orders")
    new = controller.create("orders")
    assert old.topic_id != new.topic_id
    assert controller.image.topics == (new,)


# -- deletion ----------------------------------------------------------------------------------


def test_a_topic_is_deleted_by_name_or_by_id(controller: ControllerHarness) -> None:
    orders, income = controller.create("orders"), controller.create("income")
    assert controller.delete("orders") == orders
    assert controller.records == [TopicDeletedRecord(version=7, topic_id=orders.topic_id)]
    assert controller.run(controller.machine.delete_topic_by_id(income.topic_id)) == income
    assert controller.image.topics == ()


def test_a_missing_thing_cannot_be_deleted(controller: ControllerHarness) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic is named 'orders'"):
        controller.delete("orders")
    with pytest.raises(UnknownTopicIdError, match="no topic has the id 'x'"):
        controller.machine.delete_topic_by_id("x")


# -- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("partition_count", [-1, 11])
def test_the_partitions_of_a_topic_are_bounded(partition_count: int) -> None:
    controller = ControllerHarness(ControllerLimits(topic_partitions_max=10))
    controller.brokers(1)
    with pytest.raises(InvalidPartitionsError, match=f"{partition_count} partitions: .* 1 to 10"):
        controller.create("orders", partition_count)


def test_the_partitions_of_the_cluster_are_bounded_and_given_back() -> None:
    controller = ControllerHarness(ControllerLimits(partitions_max=10))
    controller.brokers(2)
    controller.create("orders", 6)
    with pytest.raises(ThrottlingQuotaExceededError, match="the cluster has 6 and may have 10"):
        controller.create("income", 5)
    controller.create("income", 4)
    controller.delete("orders")
    controller.create("orders", 6)


def test_the_number_of_topics_is_bounded() -> None:
    controller = ControllerHarness(ControllerLimits(topics_max=1))
    controller.brokers(1)
    controller.create("orders")
    with pytest.raises(ThrottlingQuotaExceededError, match="'income' is one too many"):
        controller.create("income")


# -- more partitions ---------------------------------------------------------------------------


def test_a_topic_gets_more_partitions_and_those_it_has_stay(controller: ControllerHarness) -> None:
    old = controller.create("orders", 2)
    topic = controller.enlarge("orders", 6)
    assert controller.records == [TopicRecord(version=6, topic=topic)]
    assert topic.partitions[:2] == old.partitions
    assert sorted(controller.leaders(topic)) == [0, 0, 1, 1, 2, 2]
    assert controller.image.topics == (topic,)
    assert controller.machine._state.partition_count == 6


@pytest.mark.parametrize("partition_count", [-1, 0, 1, 2])
def test_a_topic_only_gets_more_partitions(
    controller: ControllerHarness, partition_count: int
) -> None:
    controller.create("orders", 2)
    with pytest.raises(InvalidPartitionsError, match=f"has 2 .*, not {partition_count}"):
        controller.enlarge("orders", partition_count)


def test_new_partitions_are_bounded_as_those_of_a_new_topic_are() -> None:
    controller = ControllerHarness(ControllerLimits(partitions_max=10, topic_partitions_max=8))
    controller.brokers(1)
    controller.create("orders", 6)
    controller.create("income", 2)
    with pytest.raises(InvalidPartitionsError, match="9 partitions: must be 1 to 8"):
        controller.enlarge("orders", 9)
    with pytest.raises(ThrottlingQuotaExceededError, match="has 8 and may have 10"):
        controller.enlarge("income", 5)
    assert len(controller.enlarge("income", 4).partitions) == 4


def test_validating_new_partitions_creates_none(controller: ControllerHarness) -> None:
    topic = controller.create("orders", 2)
    assert len(controller.enlarge("orders", 4, validate_only=True).partitions) == 4
    assert controller.image.topics == (topic,)
    with pytest.raises(UnknownTopicOrPartitionError):
        controller.enlarge("income", 4)


# -- placement ---------------------------------------------------------------------------------


def test_the_partitions_of_one_topic_are_spread_evenly(controller: ControllerHarness) -> None:
    assert sorted(controller.leaders(controller.create("orders", 6))) == [0, 0, 1, 1, 2, 2]


def test_small_topics_are_spread_evenly_too(controller: ControllerHarness) -> None:
    created = [controller.create(f"topic-{i}", 1) for i in range(9)]
    leaders = Counter(leader for topic in created for leader in controller.leaders(topic))
    assert leaders == {0: 3, 1: 3, 2: 3}


def test_the_remainder_goes_to_the_broker_that_leads_least(controller: ControllerHarness) -> None:
    leading = controller.leaders(controller.create("orders", 2))
    (idle,) = {0, 1, 2} - set(leading)
    assert controller.leaders(controller.create("income", 1)) == [idle]


def test_a_new_broker_shares_in_every_new_topic_and_not_in_old_ones(
    controller: ControllerHarness,
) -> None:
    old = controller.create("orders", 30)
    controller.register(BROKER, 3)
    assert Counter(controller.leaders(controller.create("income", 8))) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert controller.image.topics[1] == old


def test_a_deleted_topic_counts_no_longer(controller: ControllerHarness) -> None:
    for i in range(3):
        controller.create(f"topic-{i}", 1)
    (freed,) = controller.leaders(controller.delete("topic-1"))
    assert controller.leaders(controller.create("new", 1)) == [freed]


def test_equals_take_turns_in_being_first() -> None:
    firsts = [spread(1, brokers=[4, 5, 6], led={}, start=start)[0].leader_id for start in range(6)]
    assert firsts == [4, 5, 6, 4, 5, 6]
