"""Moves of partitions of groups, and of the transaction log, which have names but are no topics."""

import pytest
from controller_harness import (
    BROKER,
    COORDINATOR,
    GROUP_COORDINATOR,
    LAYOUT,
    ControllerHarness,
    replayed,
)

from semel_common.errors import (
    FencedLeaderEpochError,
    InvalidRequestError,
    InvalidTopicError,
    SemelError,
    UnknownTopicOrPartitionError,
)
from semel_common.ids import InternalTopic, owner_of
from semel_coordinator.controller.machine import Completion, Reassignment
from semel_coordinator.controller.serde import controller_from_journal, controller_to_journal
from semel_runtime.cluster.image import InternalPartition, PartitionLeader
from semel_runtime.machine import Result

GROUPS, TRANSACTIONS = InternalTopic
NEW = LAYOUT.group_coordinators
"""A group coordinator beyond the layout."""
OLD = 4 % LAYOUT.group_coordinators


@pytest.fixture
def controller() -> ControllerHarness:
    harness = ControllerHarness()
    for number in range(NEW + 1):
        harness.register(GROUP_COORDINATOR, number)
    harness.brokers(NEW + 3)
    return harness


def move(
    controller: ControllerHarness, to: int | None, topic: str = GROUPS, partition: int = 4
) -> PartitionLeader | SemelError:
    wanted = [Reassignment(topic=topic, partition=partition, broker_id=to)]
    (answer,) = controller.run(controller.machine.alter_partition_reassignments(wanted))
    return answer


def complete(controller: ControllerHarness, by: int, *, leader_epoch: int = 0) -> None:
    completion = Completion(topic_id=GROUPS, partition=4, leader_epoch=leader_epoch, broker_id=by)
    controller.run(controller.machine.complete_partition_reassignment(completion))


def image_of(leader: PartitionLeader) -> tuple[InternalPartition, ...]:
    return (InternalPartition(topic="__consumer_offsets", partition=4, leader=leader),)


def test_what_was_never_moved_is_not_in_the_image(controller: ControllerHarness) -> None:
    assert move(controller, OLD) == PartitionLeader(OLD, 0)
    assert move(controller, None) == PartitionLeader(OLD, 0)
    assert controller.records == []
    assert controller.image.internal_partitions == ()


def test_groups_move_to_a_group_coordinator_beyond_the_layout(
    controller: ControllerHarness,
) -> None:
    version = controller.image.version
    assert move(controller, NEW) == PartitionLeader(OLD, 0, moving_to=NEW)
    assert controller.image.internal_partitions == image_of(PartitionLeader(OLD, 0, moving_to=NEW))
    complete(controller, NEW)
    assert controller.image.internal_partitions == image_of(PartitionLeader(NEW, 1))
    assert controller.image.version == version + 2
    complete(controller, NEW)
    assert controller.records == []


def test_a_move_that_was_given_up_cannot_come_to_its_end(controller: ControllerHarness) -> None:
    move(controller, NEW)
    assert move(controller, None) == PartitionLeader(OLD, 1)
    with pytest.raises(FencedLeaderEpochError, match="__consumer_offsets-4 does not move to"):
        complete(controller, NEW)
    assert move(controller, NEW) == PartitionLeader(OLD, 1, moving_to=NEW)
    complete(controller, NEW, leader_epoch=1)
    assert move(controller, OLD) == PartitionLeader(NEW, 2, moving_to=OLD)


@pytest.mark.parametrize(
    ("topic", "partition", "to", "expected"),
    [
        (GROUPS, 4, NEW + 1, InvalidRequestError),
        (GROUPS, LAYOUT.group_partitions, NEW, UnknownTopicOrPartitionError),
        (GROUPS, -1, NEW, UnknownTopicOrPartitionError),
        (TRANSACTIONS, 4, NEW + 1, InvalidRequestError),
        (TRANSACTIONS, 0, 1, InvalidRequestError),
    ],
)
def test_what_cannot_be_moved_is_refused(
    controller: ControllerHarness,
    topic: str,
    partition: int,
    to: int | None,
    expected: type[SemelError],
) -> None:
    assert isinstance(move(controller, to, topic, partition), expected)
    assert controller.records == []


def test_no_topic_is_named_as_an_internal_one(controller: ControllerHarness) -> None:
    for name in InternalTopic:
        with pytest.raises(InvalidTopicError, match="internal"):
            controller.create(name, 1)


def test_moves_outlive_restarts_and_are_taken_over_by_an_older_copy(
    controller: ControllerHarness,
) -> None:
    older = ControllerHarness()
    older.register(BROKER, 0)
    move(controller, NEW)
    complete(controller, NEW)
    move(controller, 0, partition=5)
    image = controller.image
    for record in controller.journal:
        assert controller_from_journal(controller_to_journal(record)) == record
    for records in (enumerate(controller.journal), controller.machine.snapshot()):
        assert replayed(records).image() == image
    older.run(Result(None, older.machine.taken_over(image, {})))
    assert older.image.internal_partitions == image.internal_partitions


def test_moves_of_topics_and_groups_share_a_request(controller: ControllerHarness) -> None:
    topic = controller.create("orders", 1)
    (leader,) = topic.partitions
    target = (leader.leader_id + 1) % NEW
    version = controller.image.version
    wanted = [
        Reassignment(topic=GROUPS, partition=4, broker_id=NEW),
        Reassignment(topic="orders", partition=0, broker_id=target),
    ]
    controller.run(controller.machine.alter_partition_reassignments(wanted))
    assert [each.version for each in controller.records] == [version + 1, version + 2]
    assert controller.image.topics[0].partitions[0].moving_to == target
    assert controller.image.internal_partitions[0].leader.moving_to == NEW


def test_transactions_move_to_another_coordinator(controller: ControllerHarness) -> None:
    controller.register(COORDINATOR, 7)
    leader = owner_of(4, LAYOUT.coordinators)
    moving = PartitionLeader(leader, 0, moving_to=7)
    assert move(controller, 7, TRANSACTIONS) == moving
    done = Completion(topic_id=TRANSACTIONS, partition=4, leader_epoch=0, broker_id=7)
    controller.run(controller.machine.complete_partition_reassignment(done))
    assert [each.leader for each in controller.image.internal_partitions] == [PartitionLeader(7, 1)]


def test_the_controller_keeps_partition_0_of_the_transaction_log(
    controller: ControllerHarness,
) -> None:
    controller.register(COORDINATOR, 7)
    refused = move(controller, 7, TRANSACTIONS, 0)
    assert isinstance(refused, InvalidRequestError)
    assert refused.message == (
        "partition 0 of __transaction_state cannot be moved: the controller keeps it"
    )
    assert move(controller, 0, TRANSACTIONS, 0) == PartitionLeader(0, 0)
