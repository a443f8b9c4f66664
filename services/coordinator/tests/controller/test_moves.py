"""Moves of partitions, from request to answer."""

from collections.abc import AsyncIterator

import pytest
from coordinator_harness import Coordinators

from semel.coordinator.v1 import cluster_pb2 as cluster_wire
from semel.coordinator.v1 import moves_pb2 as wire
from semel_common.error_codes import ErrorCode
from semel_common.errors import FencedLeaderEpochError, InvalidRequestError, UnknownTopicIdError
from semel_common.wire.messages.request_bounds import REASSIGNMENTS_MAX
from semel_common.wire.methods import (
    ALTER_PARTITION_REASSIGNMENTS,
    COMPLETE_PARTITION_REASSIGNMENT,
    CREATE_TOPICS,
    DECOMMISSION_INSTANCE,
    DESCRIBE_CLUSTER,
    REBALANCE_PARTITIONS,
)


@pytest.fixture
async def cluster() -> AsyncIterator[Coordinators]:
    """A topic of two partitions on broker 0, and a broker 1 that leads nothing."""
    coordinators = Coordinators()
    async with coordinators.running(0), coordinators.running(1):
        await coordinators.register_broker(0)
        topics = [cluster_wire.NewTopic(name="orders", partitions=2)]
        await coordinators.ask(CREATE_TOPICS, cluster_wire.CreateTopicsRequest(topics=topics))
        await coordinators.register_broker(1)
        yield coordinators


async def move(
    cluster: Coordinators,
    *wanted: tuple[str, int, int | None],
    validate_only: bool = False,
    instance_id: int = 0,
) -> list[wire.PartitionReassignmentResult]:
    request = wire.AlterPartitionReassignmentsRequest(
        partitions=[
            wire.PartitionReassignment(topic=topic, partition=partition, broker_id=broker_id)
            for topic, partition, broker_id in wanted
        ],
        validate_only=validate_only,
    )
    answer = await cluster.ask(ALTER_PARTITION_REASSIGNMENTS, request, instance_id=instance_id)
    return list(answer.partitions)


async def topic(cluster: Coordinators) -> cluster_wire.Topic:
    return (await cluster.metadata()).topics[0]


async def leaders(cluster: Coordinators) -> list[tuple[int, int, int | None]]:
    """Return leader, epoch and target of each partition, as the metadata tell them."""
    return [
        (
            partition.leader_id,
            partition.leader_epoch,
            partition.moving_to if partition.HasField("moving_to") else None,
        )
        for partition in (await topic(cluster)).partitions
    ]


def decommissioning(broker_id: int) -> cluster_wire.DecommissionInstanceRequest:
    return cluster_wire.DecommissionInstanceRequest(
        role=cluster_wire.SERVICE_ROLE_BROKER, instance_id=broker_id, decommissioned=True
    )


def completion(topic_id: str, **fields: int) -> wire.CompletePartitionReassignmentRequest:
    return wire.CompletePartitionReassignmentRequest(
        topic_id=topic_id,
        partition=fields.get("partition", 0),
        leader_epoch=fields.get("leader_epoch", 0),
        broker_id=fields.get("broker_id", 1),
    )


async def test_a_partition_moves_when_the_new_leader_says_that_it_has_it(
    cluster: Coordinators,
) -> None:
    (answer,) = await move(cluster, ("orders", 0, 1))
    assert (answer.topic, answer.partition) == ("orders", 0)
    assert (answer.leader_id, answer.moving_to) == (0, 1)
    assert await leaders(cluster) == [(0, 0, 1), (0, 0, None)]
    asked = completion((await topic(cluster)).topic_id)
    for _ in range(2):
        await cluster.ask(COMPLETE_PARTITION_REASSIGNMENT, asked)
        assert await leaders(cluster) == [(1, 1, None), (0, 0, None)]


async def test_each_partition_is_answered_by_itself(cluster: Coordinators) -> None:
    answers = await move(cluster, ("orders", 1, 1), ("none", 0, 1), ("orders", 0, 7))
    assert [int(answer.error.code) for answer in answers] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
    assert answers[2].error.message == "no broker 7 has ever registered"
    assert await leaders(cluster) == [(0, 0, None), (0, 0, 1)]


async def test_a_move_is_given_up(cluster: Coordinators) -> None:
    await move(cluster, ("orders", 0, 1))
    (answer,) = await move(cluster, ("orders", 0, None))
    assert (answer.leader_id, answer.HasField("moving_to")) == (0, False)
    assert await leaders(cluster) == [(0, 1, None), (0, 0, None)]
    asked = completion((await topic(cluster)).topic_id)
    with pytest.raises(FencedLeaderEpochError):
        await cluster.ask(COMPLETE_PARTITION_REASSIGNMENT, asked)


async def test_validating_moves_nothing(cluster: Coordinators) -> None:
    (answer,) = await move(cluster, ("orders", 0, 1), validate_only=True)
    assert answer.moving_to == 1
    request = wire.RebalancePartitionsRequest(validate_only=True)
    (planned,) = (await cluster.ask(REBALANCE_PARTITIONS, request)).partitions
    assert planned.moving_to == 1
    assert await leaders(cluster) == [(0, 0, None), (0, 0, None)]


async def test_any_coordinator_takes_what_the_controller_decides(cluster: Coordinators) -> None:
    await move(cluster, ("orders", 0, 1), instance_id=1)
    asked = completion((await topic(cluster)).topic_id)
    await cluster.ask(COMPLETE_PARTITION_REASSIGNMENT, asked, instance_id=1)
    request = decommissioning(1)
    assert (await cluster.ask(DECOMMISSION_INSTANCE, request, instance_id=1)).leader_partitions == 1
    rebalance = wire.RebalancePartitionsRequest()
    (begun,) = (await cluster.ask(REBALANCE_PARTITIONS, rebalance, instance_id=1)).partitions
    assert (begun.leader_id, begun.moving_to) == (1, 0)


async def test_a_broker_is_emptied_and_shown_so(cluster: Coordinators) -> None:
    decommission = decommissioning(0)
    assert (await cluster.ask(DECOMMISSION_INSTANCE, decommission)).leader_partitions == 2
    begun = (await cluster.ask(REBALANCE_PARTITIONS, wire.RebalancePartitionsRequest())).partitions
    assert [(each.partition, each.moving_to) for each in begun] == [(0, 1), (1, 1)]
    topic_id = (await topic(cluster)).topic_id
    for partition in range(2):
        asked = completion(topic_id, partition=partition)
        await cluster.ask(COMPLETE_PARTITION_REASSIGNMENT, asked)
    assert (await cluster.ask(DECOMMISSION_INSTANCE, decommission)).leader_partitions == 0
    described = await cluster.ask(DESCRIBE_CLUSTER, cluster_wire.DescribeClusterRequest())
    shown = [
        (
            instance.instance.instance_id,
            instance.instance.decommissioned,
            instance.leader_partitions,
        )
        for instance in described.instances
        if instance.instance.role == cluster_wire.SERVICE_ROLE_BROKER
    ]
    assert shown == [(0, True, 0), (1, False, 2)]


async def test_brokers_are_emptied_when_the_disk_is_nearly_full(cluster: Coordinators) -> None:
    cluster.volumes[0].free_bytes = 0
    request = decommissioning(0)
    await cluster.ask(DECOMMISSION_INSTANCE, request)
    await cluster.ask(REBALANCE_PARTITIONS, wire.RebalancePartitionsRequest())
    await move(cluster, ("orders", 0, 1))
    await cluster.ask(COMPLETE_PARTITION_REASSIGNMENT, completion((await topic(cluster)).topic_id))
    assert await leaders(cluster) == [(1, 1, None), (0, 0, 1)]


# -- form --------------------------------------------------------------------------------------


async def test_moves_are_bounded_and_named_once(cluster: Coordinators) -> None:
    with pytest.raises(InvalidRequestError, match="partitions"):
        await move(cluster)
    with pytest.raises(InvalidRequestError, match="partitions names 'orders' 0 2 times"):
        await move(cluster, ("orders", 0, 1), ("orders", 1, 1), ("orders", 0, 1))
    many = [("orders", each, 1) for each in range(REASSIGNMENTS_MAX + 1)]
    with pytest.raises(InvalidRequestError, match="partitions"):
        await move(cluster, *many)
    assert await leaders(cluster) == [(0, 0, None), (0, 0, None)]


@pytest.mark.parametrize("field", ["partition", "leader_epoch", "broker_id"])
async def test_numbers_of_a_completion_are_checked(cluster: Coordinators, field: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{field} is -1"):
        await cluster.ask(COMPLETE_PARTITION_REASSIGNMENT, completion("x", **{field: -1}))


async def test_a_topic_that_is_gone_is_taken_over_by_no_broker(cluster: Coordinators) -> None:
    with pytest.raises(InvalidRequestError, match="topic_id is empty"):
        await cluster.ask(COMPLETE_PARTITION_REASSIGNMENT, completion(""))
    with pytest.raises(UnknownTopicIdError):
        await cluster.ask(COMPLETE_PARTITION_REASSIGNMENT, completion("gone"))


async def test_a_broker_has_a_number(cluster: Coordinators) -> None:
    with pytest.raises(InvalidRequestError, match="instance_id is -1"):
        await cluster.ask(DECOMMISSION_INSTANCE, decommissioning(-1))
    with pytest.raises(InvalidRequestError, match="no broker 7 has ever registered"):
        await cluster.ask(DECOMMISSION_INSTANCE, decommissioning(7))
