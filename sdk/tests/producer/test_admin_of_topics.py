"""The admin client on the options and the oldest records of topics."""

import asyncio

import pytest
from network_faults import LoseReply, Refuse
from producer_harness import FakeCluster, elapse, open_client

from aiosemel import DeletedRecords, TopicPartition
from aiosemel.errors import (
    CoordinatorNotAvailableError,
    InvalidConfigError,
    InvalidPartitionsError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from semel.broker.v1 import broker_pb2 as broker
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.wire import status


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster(coordinators=2)


async def test_a_topic_that_is_on_its_way_is_described(fake: FakeCluster) -> None:
    """An instance does not know it yet; only the controller says that a topic is missing."""
    fake.create_topic("t")
    fake.on_the_way.add("t")
    async with open_client(fake) as client:
        admin = client.admin()
        assert (await admin.describe_topic("t")).name == "t"
        assert [*(await admin.describe_topics(["t", "missing"])).topics] == ["t"]
        with pytest.raises(UnknownTopicOrPartitionError, match="no topic missing"):
            await admin.describe_topic("missing")


async def test_an_instance_answers_for_a_controller_that_is_away(fake: FakeCluster) -> None:
    fake.then("Metadata", None, None, Refuse(CoordinatorNotAvailableError("away")))
    async with open_client(fake) as client:
        await client.admin().list_topics()
        with pytest.raises(UnknownTopicOrPartitionError, match="no topic missing"):
            await client.admin().describe_topic("missing")


async def test_options_of_topics_travel_as_text(fake: FakeCluster) -> None:
    fake.create_topic("t")
    refused = InvalidConfigError("retention.ms is 'x'", key="retention.ms", value="x")
    answers = [
        cluster.AlterConfigsResult(name="t", configs={"retention.ms": "5"}),
        cluster.AlterConfigsResult(name="t", error=status.to_value(refused)),
    ]
    entry = cluster.ConfigEntry(name="retention.ms", value="5", default_value="9", is_default=False)
    described = cluster.TopicConfigs(name="t", entries=[entry])
    for host in ("coordinator", "coordinator1"):
        fake.canned[f"{host}:1", "DescribeConfigs"] = cluster.DescribeConfigsResponse(
            topics=[described]
        )
    async with open_client(fake) as client:
        admin = client.admin()
        await admin.create_topic("new", configs={"retention.ms": 7, "cleanup.policy": "compact"})
        for answer in answers:
            for host in ("coordinator", "coordinator1"):
                fake.canned[f"{host}:1", "IncrementalAlterConfigs"] = (
                    cluster.IncrementalAlterConfigsResponse(topics=[answer])
                )
            changing = admin.incremental_alter_configs(
                "t", set_configs={"retention.ms": 5}, reset=["segment.ms"], validate_only=True
            )
            if answer.HasField("error"):
                with pytest.raises(InvalidConfigError, match="retention"):
                    await changing
            else:
                assert await changing == {"retention.ms": "5"}
        assert (await admin.describe_configs("t"))["retention.ms"].value == "5"
    (created,) = fake.asked(cluster.CreateTopicsRequest)
    assert created.topics[0].configs == {"retention.ms": "7", "cleanup.policy": "compact"}
    asked = fake.asked(cluster.IncrementalAlterConfigsRequest)[0]
    assert (dict(asked.topics[0].set), list(asked.topics[0].reset), asked.validate_only) == (
        {"retention.ms": "5"},
        ["segment.ms"],
        True,
    )


async def test_a_topic_gets_more_partitions(fake: FakeCluster) -> None:
    refused = status.to_value(InvalidPartitionsError("topic 't' has 4 partitions already"))
    answers = [
        cluster.CreatePartitionsResult(name="t", partitions=4),
        cluster.CreatePartitionsResult(name="t", error=refused),
    ]
    fake.create_topic("t", 2)
    async with open_client(fake) as client:
        for answer in answers:
            for host in ("coordinator", "coordinator1"):
                fake.canned[f"{host}:1", "CreatePartitions"] = cluster.CreatePartitionsResponse(
                    topics=[answer]
                )
            creating = client.admin().create_partitions("t", 4, validate_only=True)
            if answer.HasField("error"):
                with pytest.raises(InvalidPartitionsError, match="already"):
                    await creating
            else:
                assert await creating == 4
    (asked, _) = fake.asked(cluster.CreatePartitionsRequest)
    assert (asked.topics[0].name, asked.topics[0].partitions, asked.validate_only) == ("t", 4, True)


async def test_new_partitions_are_known_when_they_are_created(fake: FakeCluster) -> None:
    fake.create_topic("t", 2)
    done = cluster.CreatePartitionsResult(name="t", partitions=4)
    for host in ("coordinator", "coordinator1"):
        fake.canned[f"{host}:1", "CreatePartitions"] = cluster.CreatePartitionsResponse(
            topics=[done]
        )
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send("t", b"v", partition=1)
        async with asyncio.TaskGroup() as group:
            creating = group.create_task(client.admin().create_partitions("t", 4))
            await elapse(0.01)
            assert not creating.done(), "no coordinator that was asked knows of them yet"
            fake.enlarge_topic("t", 4)
        await producer.send("t", b"v", partition=3)
        await producer.flush()
    assert fake.stored("t", 3) == [b"v"]


async def test_a_topic_whose_options_changed_is_refreshed_as_before(fake: FakeCluster) -> None:
    fake.create_topic("t", 2)
    altered = cluster.AlterConfigsResult(name="t", configs={"retention.ms": "5"})
    grown = cluster.CreatePartitionsResult(name="t", partitions=4)
    for host in ("coordinator:1", "coordinator1:1"):
        fake.canned[host, "IncrementalAlterConfigs"] = cluster.IncrementalAlterConfigsResponse(
            topics=[altered]
        )
        fake.canned[host, "CreatePartitions"] = cluster.CreatePartitionsResponse(topics=[grown])
    async with open_client(fake) as client, client.producer() as producer:
        await producer.send_and_wait("t", b"v", partition=1)
        admin = client.admin()
        await admin.incremental_alter_configs("t", set_configs={"retention.ms": 5})
        fake.enlarge_topic("t", 4)
        assert await admin.create_partitions("t", 4) == 4
        await producer.send_and_wait("t", b"v", partition=3)
    assert fake.stored("t", 3) == [b"v"]


async def test_a_topic_that_is_made_again_under_its_name_is_another(fake: FakeCluster) -> None:
    fake.create_topic("t")
    deleted = cluster.DeleteTopicsResponse(topics=[cluster.DeleteTopicResult(name="t")])
    for host in ("coordinator:1", "coordinator1:1"):
        fake.canned[host, "DeleteTopics"] = deleted
    async with open_client(fake) as client, client.producer() as producer:
        await producer.send_and_wait("t", b"old")
        await client.admin().delete_topic("t")
        fake.create_topic("t")
        await producer.send_and_wait("t", b"new")
    assert fake.stored("t") == [b"new"]


@pytest.mark.parametrize("exists", [False, True])
async def test_a_topic_is_returned_as_it_was_created_whatever_had_its_name_before(
    fake: FakeCluster, *, exists: bool
) -> None:
    """Another client has deleted the topic that this client knew, and perhaps made a new one."""
    fake.create_topic("t")
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"before")
        fake.recreate_topic("t", partitions=3)
        if not exists:
            del fake.topics["t"]
        topic = await client.admin().create_topic("t", partitions=3, exist_ok=exists)
        assert (topic.topic_id, len(topic.partitions)) == (fake.topics["t"], 3)
        await producer.send_and_wait("t", b"after", partition=2)
    assert fake.stored("t", 2) == [b"after"]


async def test_a_topic_is_created_for_this_client_too_where_a_coordinator_lags(
    fake: FakeCluster,
) -> None:
    fake.create_topic("t")
    async with open_client(fake) as client:
        await client.admin().describe_topics(["t"])
        for host in ("coordinator", "coordinator1"):
            lagging = fake._metadata(cluster.MetadataRequest(topics=["t"]))
            fake.canned[f"{host}:1", "Metadata"] = lagging
        del fake.topics["t"]
        asyncio.get_running_loop().call_later(1, fake.canned.clear)
        topic = await client.admin().create_topic("t", partitions=3)
        assert (topic.topic_id, len(topic.partitions)) == (fake.topics["t"], 3)


async def test_records_are_deleted_at_the_leader_of_each_partition(fake: FakeCluster) -> None:
    fake.brokers = 2
    fake.create_topic("t", partitions=2)
    for number in range(2):
        result = broker.DeleteRecordsPartitionResult(
            topic_id=fake.topics["t"],
            partition=number,
            log_start_offset=number,
            deleted_offsets=5,
        )
        fake.canned[f"broker{number}:1", "DeleteRecords"] = broker.DeleteRecordsResponse(
            partitions=[result]
        )
    fake.then("DeleteRecords", LoseReply())
    async with open_client(fake) as client:
        before = {("t", 0): None, ("t", 1): 7}
        deleted = await client.admin().delete_records(before, validate_only=True)
    assert deleted == {
        TopicPartition("t", 0): DeletedRecords(0, 5),
        TopicPartition("t", 1): DeletedRecords(1, 5),
    }
    asked = fake.asked(broker.DeleteRecordsRequest)
    assert all(question.validate_only for question in asked)
    positions = [question.partitions[0].WhichOneof("position") for question in asked]
    assert sorted(str(position) for position in positions) == ["all", "all", "before_offset"]


async def test_a_deletion_that_is_refused_says_why(fake: FakeCluster) -> None:
    fake.create_topic("t")
    no = status.to_value(OffsetOutOfRangeError("offset 9 is past the last stable offset 3"))
    fake.canned["broker0:1", "DeleteRecords"] = broker.DeleteRecordsResponse(
        partitions=[broker.DeleteRecordsPartitionResult(topic_id=fake.topics["t"], error=no)]
    )
    async with open_client(fake) as client:
        with pytest.raises(OffsetOutOfRangeError, match="past the last stable offset 3"):
            await client.admin().delete_records({("t", 0): 9})
        with pytest.raises(UnknownTopicOrPartitionError, match="no partition 1"):
            await client.admin().delete_records({("t", 1): 9})
