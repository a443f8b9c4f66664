"""Moves of partitions: who leads at every step, and under which leader epoch."""

import pytest
from controller_harness import BROKER, ControllerHarness, replayed

from semel_common.errors import (
    BrokerNotAvailableError,
    FencedLeaderEpochError,
    InvalidRequestError,
    SemelError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel_coordinator.controller.machine import (
    Completion,
    InstanceKey,
    Reassigned,
    Reassignment,
)
from semel_coordinator.controller.machine.reassignment import retargeted
from semel_coordinator.controller.machine.records import TopicRecord
from semel_runtime.cluster.metadata_image import PartitionLeader, Topic

A, B, C = 0, 1, 2


@pytest.fixture
def controller() -> ControllerHarness:
    """Three brokers, and a topic of two partitions; partition 0 is led by A."""
    harness = ControllerHarness()
    harness.register(BROKER, A)
    harness.create("orders", 2)
    harness.register(BROKER, B)
    harness.register(BROKER, C)
    return harness


def topic(controller: ControllerHarness) -> Topic:
    return controller.image.topics[0]


def leader(controller: ControllerHarness) -> PartitionLeader:
    return topic(controller).partitions[0]


def move(
    controller: ControllerHarness,
    broker_id: int | None,
    *,
    name: str = "orders",
    partition: int = 0,
    validate_only: bool = False,
) -> Reassigned:
    wanted = [Reassignment(topic=name, partition=partition, broker_id=broker_id)]
    (answer,) = controller.run(
        controller.machine.alter_partition_reassignments(wanted, validate_only=validate_only)
    )
    return answer


def complete(
    controller: ControllerHarness,
    broker_id: int,
    *,
    leader_epoch: int = 0,
    topic_id: str = "topic-1",
    partition: int = 0,
) -> None:
    completion = Completion(
        topic_id=topic_id, partition=partition, leader_epoch=leader_epoch, broker_id=broker_id
    )
    controller.run(controller.machine.complete_partition_reassignment(completion))


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        (PartitionLeader(A, 3), B, PartitionLeader(A, 3, B)),
        (PartitionLeader(A, 3), A, PartitionLeader(A, 3)),
        (PartitionLeader(A, 3), None, PartitionLeader(A, 3)),
        (PartitionLeader(A, 3, B), B, PartitionLeader(A, 3, B)),
        (PartitionLeader(A, 3, B), None, PartitionLeader(A, 4)),
        (PartitionLeader(A, 3, B), A, PartitionLeader(A, 4)),
        (PartitionLeader(A, 3, B), C, PartitionLeader(A, 4, C)),
    ],
)
def test_every_way_out_of_a_move_raises_the_leader_epoch(
    before: PartitionLeader, target: int | None, after: PartitionLeader
) -> None:
    assert retargeted(before, target) == after


def test_a_partition_that_moves_is_led_as_before_until_the_new_leader_has_it(
    controller: ControllerHarness,
) -> None:
    version = controller.image.version
    assert move(controller, B) == PartitionLeader(A, 0, B)
    assert controller.records == [TopicRecord(version=version + 1, topic=topic(controller))]
    assert leader(controller) == PartitionLeader(A, 0, B)
    complete(controller, B)
    assert controller.records == [TopicRecord(version=version + 2, topic=topic(controller))]
    assert leader(controller) == PartitionLeader(B, 1)
    assert topic(controller).partitions[1] == PartitionLeader(A, 0)


def test_partitions_of_one_topic_share_a_record(controller: ControllerHarness) -> None:
    controller.create("income", 1)
    wanted = [
        Reassignment(topic="orders", partition=1, broker_id=B),
        Reassignment(topic="income", partition=0, broker_id=A),
        Reassignment(topic="orders", partition=0, broker_id=C),
    ]
    answers = controller.run(controller.machine.alter_partition_reassignments(wanted))
    assert [answer.moving_to for answer in answers if isinstance(answer, PartitionLeader)] == [
        B,
        A,
        C,
    ]
    first, second = controller.records
    assert (first.version + 1, second.version) == (second.version, controller.image.version)
    assert replayed(enumerate(controller.journal)).image() == controller.image
    assert replayed(controller.machine.snapshot()).image() == controller.image


def test_asking_again_changes_nothing(controller: ControllerHarness) -> None:
    move(controller, B)
    for target in (B, B):
        assert move(controller, target) == PartitionLeader(A, 0, B)
        assert controller.records == []
    move(controller, None)
    assert move(controller, None) == PartitionLeader(A, 1)
    assert controller.records == []


def test_validating_a_move_begins_none(controller: ControllerHarness) -> None:
    assert move(controller, B, validate_only=True) == PartitionLeader(A, 0, B)
    assert controller.records == []
    assert leader(controller) == PartitionLeader(A, 0)


@pytest.mark.parametrize(
    ("target", "name", "partition", "kind", "message"),
    [
        (B, "none", 0, UnknownTopicOrPartitionError, "no topic is named 'none'"),
        (B, "orders", 2, UnknownTopicOrPartitionError, "'orders' has no partition 2: it has 2"),
        (B, "orders", -1, UnknownTopicOrPartitionError, "'orders' has no partition -1"),
        (None, "orders", 2, UnknownTopicOrPartitionError, "'orders' has no partition 2"),
        (7, "orders", 0, InvalidRequestError, "no broker 7 has ever registered"),
        (C, "orders", 0, InvalidRequestError, "broker 2 is decommissioned: nothing can move"),
    ],
)
def test_what_cannot_be_moved_is_answered_with_the_reason(
    controller: ControllerHarness,
    target: int | None,
    name: str,
    partition: int,
    kind: type[SemelError],
    message: str,
) -> None:
    controller.run(controller.machine.decommission_instance(InstanceKey(BROKER, C)))
    answer = move(controller, target, name=name, partition=partition)
    assert isinstance(answer, kind)
    assert message in str(answer)
    assert controller.records == []


def test_one_partition_that_cannot_be_moved_stops_no_other(controller: ControllerHarness) -> None:
    wanted = [
        Reassignment(topic="orders", partition=index, broker_id=target)
        for index, target in ((0, 7), (1, B))
    ]
    refused, moved = controller.run(controller.machine.alter_partition_reassignments(wanted))
    assert isinstance(refused, InvalidRequestError)
    assert moved == topic(controller).partitions[1] == PartitionLeader(A, 0, B)


# -- completing --------------------------------------------------------------------------------


def test_completing_again_changes_nothing_even_if_it_moves_on(
    controller: ControllerHarness,
) -> None:
    move(controller, B)
    complete(controller, B)
    complete(controller, B)
    assert controller.records == []
    move(controller, C)
    complete(controller, B)
    assert controller.records == []
    assert leader(controller) == PartitionLeader(B, 1, C)


def test_a_move_that_was_given_up_cannot_be_completed(controller: ControllerHarness) -> None:
    move(controller, B)
    move(controller, None)
    with pytest.raises(
        FencedLeaderEpochError,
        match="orders-0 does not move to broker 1 under leader epoch 0: broker 0 leads it under 1,"
        " and it moves nowhere",
    ):
        complete(controller, B)
    move(controller, B)
    with pytest.raises(FencedLeaderEpochError, match="leads it under 1, and it moves to broker 1"):
        complete(controller, B)
    complete(controller, B, leader_epoch=1)
    assert leader(controller) == PartitionLeader(B, 2)


def test_only_the_broker_that_it_moves_to_can_take_it_over(controller: ControllerHarness) -> None:
    move(controller, B)
    with pytest.raises(FencedLeaderEpochError):
        complete(controller, C)
    with pytest.raises(FencedLeaderEpochError):
        complete(controller, B, leader_epoch=1)
    with pytest.raises(FencedLeaderEpochError):
        complete(controller, A, leader_epoch=0)


def test_the_leader_cannot_complete_what_does_not_move(controller: ControllerHarness) -> None:
    with pytest.raises(FencedLeaderEpochError):
        complete(controller, A, leader_epoch=0)


def test_what_is_gone_cannot_be_taken_over(controller: ControllerHarness) -> None:
    move(controller, B)
    with pytest.raises(UnknownTopicOrPartitionError):
        complete(controller, B, partition=2)
    controller.delete("orders")
    with pytest.raises(UnknownTopicIdError):
        complete(controller, B)


def test_a_move_to_a_broker_that_was_decommissioned_since_comes_to_its_end(
    controller: ControllerHarness,
) -> None:
    move(controller, B)
    controller.run(controller.machine.decommission_instance(InstanceKey(BROKER, B)))
    complete(controller, B)
    assert leader(controller) == PartitionLeader(B, 1)


# -- decommissioned brokers --------------------------------------------------------------------


def decommission(controller: ControllerHarness, broker_id: int, *, to: bool = True) -> int:
    return controller.run(
        controller.machine.decommission_instance(InstanceKey(BROKER, broker_id), to=to)
    )


def test_a_decommissioned_broker_says_what_it_leads_and_what_comes(
    controller: ControllerHarness,
) -> None:
    move(controller, B)
    assert decommission(controller, A) == 2
    assert decommission(controller, B) == 1
    with pytest.raises(InvalidRequestError, match=f"broker {C} is the last broker that may lead"):
        decommission(controller, C)
    assert decommission(controller, A, to=False) == 2
    assert decommission(controller, C) == 0


def test_decommissioning_is_shown_kept_and_taken_back(controller: ControllerHarness) -> None:
    version = controller.image.version
    decommission(controller, C)
    assert controller.instance(BROKER, C).decommissioned
    assert controller.image.version == version + 1
    decommission(controller, C)
    assert controller.records == []
    controller.register(BROKER, C, claim_epoch=2)
    assert controller.instance(BROKER, C).decommissioned
    assert controller.image.version == version + 1
    decommission(controller, C, to=False)
    assert not controller.instance(BROKER, C).decommissioned
    assert replayed(controller.machine.snapshot()).image() == controller.image


def test_an_unknown_broker_cannot_be_decommissioned(
    controller: ControllerHarness,
) -> None:
    with pytest.raises(InvalidRequestError, match="no broker 7 has ever registered"):
        decommission(controller, 7)


def test_new_partitions_go_to_no_decommissioned_broker(controller: ControllerHarness) -> None:
    decommission(controller, B)
    assert set(controller.leaders(controller.create("income", 6))) == {A, C}
    assert set(controller.leaders(controller.enlarge("orders", 6))) == {A, C}


def test_without_a_broker_that_may_lead_no_topic_is_made(controller: ControllerHarness) -> None:
    decommission(controller, A)
    decommission(controller, B)
    controller.decommission_last(InstanceKey(BROKER, C))
    with pytest.raises(
        BrokerNotAvailableError,
        match="all 3 brokers are decommissioned: none of them can lead 'income'",
    ):
        controller.create("income")


def test_new_partitions_count_on_where_others_will_be_led(controller: ControllerHarness) -> None:
    decommission(controller, C)
    move(controller, B)
    move(controller, B, partition=1)
    assert controller.leaders(controller.create("income", 1)) == [A]
