"""The admin client on moves of partitions."""

import asyncio

import pytest
from producer_harness import FakeCluster, elapse, open_client

from aiosemel import PartitionReassignment, SemelClient, ServiceRole, TopicPartition
from aiosemel._cluster.metadata_cache import TOPICS_IN_REQUEST
from aiosemel.errors import InvalidRequestError
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import moves_pb2 as moves
from semel_common.wire import status

CONTROLLER = "coordinator:1"
MOVING = moves.PartitionReassignmentResult(topic="t", partition=1, leader_id=0, moving_to=2)
RESTING = moves.PartitionReassignmentResult(topic="t", partition=0, leader_id=1)


@pytest.fixture
def fake() -> FakeCluster:
    """Two coordinators, of which the second does not know the controller's decisions yet."""
    cluster_ = FakeCluster(coordinators=2)
    cluster_.create_topic("t", 2)
    return cluster_


def place(fake: FakeCluster, moving_to: int | None, *, version: int) -> None:
    """Let the controller say where partition 1 moves."""
    response = cluster.MetadataResponse(cluster_id="c", version=version, layout=fake.layout)
    topic = response.topics.add(name="t", topic_id=fake.topics["t"])
    topic.partitions.add(index=1, leader_id=0, leader_epoch=4, moving_to=moving_to)
    topic.partitions.add(index=0, leader_id=1)
    gone = response.topics.add(name="gone")
    gone.error.CopyFrom(status.to_value(InvalidRequestError("gone")))
    fake.canned[CONTROLLER, "Metadata"] = response


async def known(client: SemelClient) -> None:
    """Let the client know the cluster, before answers are canned."""
    await client.admin().list_topics()


async def test_partitions_are_moved_and_stay_each_by_itself(fake: FakeCluster) -> None:
    fake.canned[CONTROLLER, "AlterPartitionReassignments"] = (
        moves.AlterPartitionReassignmentsResponse(partitions=[MOVING, RESTING])
    )
    async with open_client(fake) as client:
        after = await client.admin().moves.alter_partition_reassignments(
            {("t", 1): 2, TopicPartition("t", 0): None}, validate_only=True
        )
    assert after == {
        TopicPartition("t", 1): PartitionReassignment(leader_id=0, moving_to=2),
        TopicPartition("t", 0): PartitionReassignment(leader_id=1, moving_to=None),
    }
    (asked,) = fake.asked(moves.AlterPartitionReassignmentsRequest)
    first, second = asked.partitions
    assert (first.topic, first.partition, first.broker_id) == ("t", 1, 2)
    assert not second.HasField("broker_id")
    assert asked.validate_only


async def test_partitions_of_groups_are_listed_and_waited_for_too(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        await known(client)
        place(fake, None, version=1)
        response = fake.canned[CONTROLLER, "Metadata"]
        assert isinstance(response, cluster.MetadataResponse)
        groups = response.internal_partitions.add(topic="__consumer_offsets")
        groups.partition.MergeFrom(cluster.Partition(index=3, leader_id=1, moving_to=2))
        admin = client.admin().moves
        moving = await admin.list_partition_reassignments()
        groups.partition.ClearField("moving_to")
        del response.topics[:]
        none = status.to_value(InvalidRequestError("no topic"))
        response.topics.add(name="__consumer_offsets", error=none)
        fake.canned[CONTROLLER, "Metadata"] = response
        done = await admin.wait_for_reassignments(moving)
    place_of_groups = TopicPartition("__consumer_offsets", 3)
    place_before = PartitionReassignment(
        role=ServiceRole.GROUP_COORDINATOR, leader_id=1, moving_to=2
    )
    assert moving == {place_of_groups: place_before}
    assert (place_before.leader, place_before.target) == (
        "group-coordinator-1",
        "group-coordinator-2",
    )
    assert done == {place_of_groups: 1}


async def test_a_partition_that_cannot_be_moved_is_reported(fake: FakeCluster) -> None:
    refused = moves.PartitionReassignmentResult(
        topic="t", partition=0, error=status.to_value(InvalidRequestError("no broker 7"))
    )
    fake.canned[CONTROLLER, "AlterPartitionReassignments"] = (
        moves.AlterPartitionReassignmentsResponse(partitions=[MOVING, refused])
    )
    async with open_client(fake) as client:
        with pytest.raises(InvalidRequestError, match="no broker 7"):
            await client.admin().moves.alter_partition_reassignments({("t", 1): 2, ("t", 0): 7})


async def test_what_moves_is_asked_of_the_controller(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        await known(client)
        place(fake, 2, version=9)
        for _ in range(2):
            assert await client.admin().moves.list_partition_reassignments() == {
                TopicPartition("t", 1): PartitionReassignment(leader_id=0, moving_to=2)
            }


async def test_the_end_of_moves_is_waited_for(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        await known(client)
        place(fake, 2, version=9)
        waiting = asyncio.create_task(
            client.admin().moves.wait_for_reassignments([("t", 1), ("gone", 0)])
        )
        await elapse(0.01)
        assert not waiting.done()
        place(fake, None, version=10)
        assert await waiting == {TopicPartition("t", 1): 0}
    first, second = fake.asked(cluster.MetadataRequest)[-3:-1]
    assert list(first.topics) == ["gone", "t"]
    assert second.known_version == 9


async def test_the_end_of_moves_of_more_topics_than_fit_into_a_question_is_waited_for(
    fake: FakeCluster,
) -> None:
    many = [(f"t{number}", 0) for number in range(TOPICS_IN_REQUEST + 1)]
    for name, _ in many:
        fake.create_topic(name)
    async with open_client(fake) as client:
        leaders = await client.admin().moves.wait_for_reassignments(many)
    assert leaders == dict.fromkeys(map(TopicPartition.named, many), 0)


async def test_partitions_are_balanced(fake: FakeCluster) -> None:
    fake.canned[CONTROLLER, "RebalancePartitions"] = moves.RebalancePartitionsResponse(
        partitions=[MOVING]
    )
    async with open_client(fake) as client:
        planned = await client.admin().moves.rebalance_partitions(validate_only=True)
    assert planned == {TopicPartition("t", 1): PartitionReassignment(leader_id=0, moving_to=2)}
    (asked,) = fake.asked(moves.RebalancePartitionsRequest)
    assert asked.validate_only


async def test_instances_are_decommissioned_and_taken_back(fake: FakeCluster) -> None:
    fake.canned[CONTROLLER, "DecommissionInstance"] = cluster.DecommissionInstanceResponse(
        leader_partitions=3
    )
    async with open_client(fake) as client:
        moves_ = client.admin().moves
        assert await moves_.decommission_instance(ServiceRole.BROKER, 1) == 3
        await moves_.decommission_instance(ServiceRole.GROUP_COORDINATOR, 2, undo=True)
    asked = fake.asked(cluster.DecommissionInstanceRequest)
    assert [
        (question.role, question.instance_id, question.decommissioned) for question in asked
    ] == [
        (cluster.SERVICE_ROLE_BROKER, 1, True),
        (cluster.SERVICE_ROLE_GROUP_COORDINATOR, 2, False),
    ]


async def test_descriptions_name_the_next_leader(fake: FakeCluster) -> None:
    instance = cluster.Instance(
        role=cluster.SERVICE_ROLE_BROKER, instance_id=0, host="b", port=1, decommissioned=True
    )
    async with open_client(fake) as client:
        await known(client)
        place(fake, 2, version=9)
        del fake.canned[CONTROLLER, "Metadata"].topics[1]  # type: ignore[attr-defined]  # it has topics
        for host in ("coordinator:1", "coordinator1:1"):
            fake.canned[host, "Metadata"] = fake.canned[CONTROLLER, "Metadata"]
            fake.canned[host, "DescribeCluster"] = fake.described(
                [cluster.InstanceDescription(instance=instance)]
            )
        described = await client.admin().describe_topic("t")
        (broker,) = (await client.admin().describe_cluster()).instances
    assert [partition.moving_to for partition in described.partitions] == [None, 2]
    assert broker.is_decommissioned
