"""Moves of partitions of groups, and of the transaction log, which have names but are no topics."""

from collections import Counter

import pytest
from controller_harness import (
    BROKER,
    COORDINATOR,
    GROUP_COORDINATOR,
    LAYOUT,
    ControllerHarness,
    replayed,
)
from hypothesis import given
from hypothesis import strategies as st

from semel_common.errors import (
    BrokerNotAvailableError,
    FencedLeaderEpochError,
    InvalidRequestError,
    InvalidTopicError,
    SemelError,
    UnknownTopicOrPartitionError,
)
from semel_common.ids import InternalTopic, owner_of
from semel_coordinator.controller.journal.controller_serde import (
    controller_from_journal,
    controller_to_journal,
)
from semel_coordinator.controller.machine import CONTROLLER, Completion, InstanceKey, Reassignment
from semel_runtime.cluster.metadata_image import InternalPartition, PartitionLeader
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
    assert [record.version for record in controller.records] == [version + 1, version + 2]
    assert controller.image.topics[0].partitions[0].moving_to == target
    assert controller.image.internal_partitions[0].leader.moving_to == NEW


def test_transactions_move_to_another_coordinator(controller: ControllerHarness) -> None:
    controller.register(COORDINATOR, 7)
    leader = owner_of(4, LAYOUT.coordinators)
    moving = PartitionLeader(leader, 0, moving_to=7)
    assert move(controller, 7, TRANSACTIONS) == moving
    done = Completion(topic_id=TRANSACTIONS, partition=4, leader_epoch=0, broker_id=7)
    controller.run(controller.machine.complete_partition_reassignment(done))
    assert [
        internal_partition.leader for internal_partition in controller.image.internal_partitions
    ] == [PartitionLeader(7, 1)]


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


# -- shares ------------------------------------------------------------------------------------


ROLES = {GROUPS: GROUP_COORDINATOR, TRANSACTIONS: COORDINATOR}
OWNERS = {GROUPS: LAYOUT.group_coordinators, TRANSACTIONS: LAYOUT.coordinators}
SIZES = {GROUPS: LAYOUT.group_partitions, TRANSACTIONS: LAYOUT.transaction_log_partitions}


def rebalance(controller: ControllerHarness) -> list[tuple[str, int, PartitionLeader]]:
    """Begin the moves that there are to be made, and bring them to their end."""
    moves = controller.run(controller.machine.rebalance_partitions())
    for topic, partition, leader in moves:
        assert leader.moving_to is not None
        done = Completion(
            topic_id=topic,
            partition=partition,
            leader_epoch=leader.leader_epoch,
            broker_id=leader.moving_to,
        )
        controller.run(controller.machine.complete_partition_reassignment(done))
    return [(each.topic, each.partition, each.leader) for each in moves]


def decommission(controller: ControllerHarness, key: InstanceKey, *, to: bool = True) -> int:
    return controller.run(controller.machine.decommission_instance(key, to=to))


def led(controller: ControllerHarness, topic: InternalTopic) -> Counter[int]:
    """Count what each instance leads that is not decommissioned."""
    moved = {
        internal_partition.partition: internal_partition.leader.leader_id
        for internal_partition in controller.image.internal_partitions
        if internal_partition.topic == topic
    }
    counts = Counter(
        {
            instance.instance_id: 0
            for instance in controller.image.instances
            if instance.role is ROLES[topic] and not instance.decommissioned
        }
    )
    counts.update(moved.get(each, owner_of(each, OWNERS[topic])) for each in range(SIZES[topic]))
    return counts


def test_what_the_layout_shares_out_stays(controller: ControllerHarness) -> None:
    decommission(controller, InstanceKey(GROUP_COORDINATOR, NEW))
    for number in range(LAYOUT.coordinators):
        controller.register(COORDINATOR, number)
    assert rebalance(controller) == []


@pytest.mark.parametrize("topic", InternalTopic)
def test_an_instance_that_is_added_gets_its_share(
    controller: ControllerHarness, topic: InternalTopic
) -> None:
    for number in range(7):
        controller.register(ROLES[topic], number)
    moved = rebalance(controller)
    counts = led(controller, topic)
    assert set(counts) == set(range(7))
    assert max(counts.values()) - min(counts.values()) <= 1
    assert {each for each, _, _ in moved} >= {topic.value}
    assert rebalance(controller) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30))
def test_the_controller_keeps_its_partition_when_instances_come_and_go(
    changes: list[tuple[int, bool]],
) -> None:
    controller = ControllerHarness()
    controller.brokers(1)
    controller.register(COORDINATOR, 0)
    for number, closed in changes:
        controller.register(COORDINATOR, number)
        if number != 0:
            decommission(controller, InstanceKey(COORDINATOR, number), to=closed)
        for topic, partition, _ in rebalance(controller):
            assert (topic, partition) != (TRANSACTIONS, 0)
        counts = led(controller, TRANSACTIONS)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert counts[0] >= 1


@pytest.mark.parametrize("topic", InternalTopic)
def test_a_decommissioned_instance_ends_with_nothing(
    controller: ControllerHarness, topic: InternalTopic
) -> None:
    for number in range(3):
        controller.register(ROLES[topic], number)
    rebalance(controller)
    key = InstanceKey(ROLES[topic], 1)
    held = decommission(controller, key)
    assert held > 0
    refused = move(controller, 1, topic, 2)
    assert isinstance(refused, InvalidRequestError)
    assert refused.message == f"{key} is decommissioned: nothing can move to it"
    assert len(rebalance(controller)) == held
    assert decommission(controller, key) == 0
    assert decommission(controller, key, to=False) == 0
    rebalance(controller)
    assert abs(decommission(controller, key) - held) <= 1


def test_the_controller_cannot_be_decommissioned(controller: ControllerHarness) -> None:
    controller.register(COORDINATOR, 0)
    controller.register(COORDINATOR, 1)
    with pytest.raises(InvalidRequestError, match="coordinator 0 is the controller, which keeps"):
        decommission(controller, CONTROLLER)
    assert not controller.image.instances[0].decommissioned


def test_an_instance_is_left_to_lead_groups(controller: ControllerHarness) -> None:
    for number in range(NEW):
        decommission(controller, InstanceKey(GROUP_COORDINATOR, number))
    with pytest.raises(InvalidRequestError, match="is the last group coordinator that may lead"):
        decommission(controller, InstanceKey(GROUP_COORDINATOR, NEW))
    controller.decommission_last(InstanceKey(GROUP_COORDINATOR, NEW))
    with pytest.raises(BrokerNotAvailableError, match="group coordinators are decommissioned"):
        rebalance(controller)
