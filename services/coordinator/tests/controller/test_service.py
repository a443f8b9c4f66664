"""ClusterService on the controller, from request to answer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

import pytest
from coordinator_harness import Coordinators, registration

from semel.common.v1.errors_pb2 import Error
from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.error_codes import ErrorCode
from semel_common.errors import (
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    InvalidRequestError,
    RetriableError,
    StaleClaimEpochError,
)
from semel_common.wire.methods import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
    REGISTER_INSTANCE,
)


@pytest.fixture
async def cluster() -> AsyncIterator[Coordinators]:
    coordinators = Coordinators()
    async with coordinators.running(0):
        await coordinators.register_broker(0)
        await coordinators.register_broker(1)
        yield coordinators


class Answer(Protocol):
    """One of several answers in a response."""

    @property
    def error(self) -> Error: ...


def code_of(answer: Answer) -> int:
    return int(answer.error.code)


async def create(
    cluster: Coordinators, *names: str, partitions: int = 0, validate_only: bool = False
) -> wire.CreateTopicsResponse:
    topics = [wire.NewTopic(name=name, partitions=partitions) for name in names]
    request = wire.CreateTopicsRequest(topics=topics, validate_only=validate_only)
    return await cluster.ask(CREATE_TOPICS, request)


# -- topics as the controller knows them now -----------------------------------------------------


async def test_the_controller_says_for_good_that_a_topic_does_not_exist(
    cluster: Coordinators,
) -> None:
    await create(cluster, "orders")
    request = wire.MetadataRequest(
        topics=["orders", "missing", "not legal"], topic_ids=["x"], from_controller=True
    )
    answer = await cluster.ask(METADATA, request)
    assert [code_of(topic) for topic in answer.topics] == [
        0,
        ErrorCode.TOPIC_NOT_FOUND,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_NOT_FOUND,
    ]
    assert [(each.name, each.topic_id) for each in answer.topics[1::2]] == [
        ("missing", ""),
        ("", "x"),
    ]
    assert answer.cluster_id


async def test_another_coordinator_asks_the_controller(cluster: Coordinators) -> None:
    request = wire.MetadataRequest(topics=["orders", "missing"], from_controller=True)
    async with cluster.running(1) as app:
        await app.ready.wait()
        await create(cluster, "orders")
        answer = await cluster.ask(METADATA, request, instance_id=1)
    assert [code_of(topic) for topic in answer.topics] == [0, ErrorCode.TOPIC_NOT_FOUND]
    assert answer.instances


async def test_without_the_controller_nothing_is_said_for_good(cluster: Coordinators) -> None:
    request = wire.MetadataRequest(topics=["missing"], from_controller=True)
    async with cluster.running(1) as app:
        await app.ready.wait()
        cluster.network.cut("coordinator-0:1")
        with pytest.raises(RetriableError):
            await cluster.ask(METADATA, request, instance_id=1)


async def test_all_topics_cannot_be_asked_of_the_controller(cluster: Coordinators) -> None:
    request = wire.MetadataRequest(all_topics=True, from_controller=True)
    with pytest.raises(InvalidRequestError, match="from_controller and all_topics"):
        await cluster.ask(METADATA, request)


# -- Metadata ----------------------------------------------------------------------------------


async def test_metadata_tells_the_cluster_and_its_instances(cluster: Coordinators) -> None:
    answer = await cluster.metadata()
    assert len(answer.cluster_id) == 22
    assert answer.layout.coordinators == 2
    found = [
        (instance.role, instance.instance_id, instance.host, instance.port)
        for instance in answer.instances
    ]
    assert found == [
        (wire.SERVICE_ROLE_COORDINATOR, 0, "coordinator-0", 1),
        (wire.SERVICE_ROLE_BROKER, 0, "broker-0", 1),
        (wire.SERVICE_ROLE_BROKER, 1, "broker-1", 1),
    ]
    assert not any(instance.listeners for instance in answer.instances)


async def test_services_get_all_listeners(cluster: Coordinators) -> None:
    answer = await cluster.ask(METADATA, wire.MetadataRequest(all_listeners=True))
    assert [instance.listeners[0].host for instance in answer.instances] == [
        "coordinator-0",
        "broker-0",
        "broker-1",
    ]


async def test_an_instance_without_the_listener_that_was_asked_has_no_host(
    cluster: Coordinators,
) -> None:
    request = registration(2)
    request.listeners[0].name = "inside"
    await cluster.ask(REGISTER_INSTANCE, request)
    answer = await cluster.metadata()
    assert (answer.instances[-1].host, answer.instances[-1].port) == ("", 0)


async def test_topics_are_found_by_name_and_by_id(cluster: Coordinators) -> None:
    created = await create(cluster, "orders", "income", partitions=2)
    request = wire.MetadataRequest(topics=["orders"], topic_ids=[created.topics[1].topic_id])
    answer = await cluster.ask(METADATA, request)
    assert [topic.name for topic in answer.topics] == ["orders", "income"]
    assert [partition.index for partition in answer.topics[0].partitions] == [0, 1]
    assert {partition.leader_id for partition in answer.topics[0].partitions} == {0, 1}
    assert {partition.leader_epoch for partition in answer.topics[0].partitions} == {0}


async def test_all_topics_are_listed_by_name(cluster: Coordinators) -> None:
    await create(cluster, "b", "a")
    assert [topic.name for topic in (await cluster.metadata()).topics] == ["a", "b"]


async def test_nothing_is_said_of_topics_that_were_not_asked_for(cluster: Coordinators) -> None:
    await create(cluster, "orders")
    assert not (await cluster.ask(METADATA, wire.MetadataRequest())).topics


async def test_a_topic_that_is_not_there_is_a_value(cluster: Coordinators) -> None:
    request = wire.MetadataRequest(topics=["orders", "not legal"], topic_ids=["x"])
    answer = await cluster.ask(METADATA, request)
    assert [code_of(topic) for topic in answer.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert [topic.name or topic.topic_id for topic in answer.topics] == ["orders", "not legal", "x"]


async def test_a_question_for_newer_metadata_waits_for_a_change(cluster: Coordinators) -> None:
    known = (await cluster.metadata()).version
    request = wire.MetadataRequest(known_version=known, max_wait_ms=60_000, all_topics=True)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(cluster.ask(METADATA, request))
        await cluster.metadata()
        assert not waiting.done()
        await create(cluster, "orders")
    assert waiting.result().version == known + 1
    assert [topic.name for topic in waiting.result().topics] == ["orders"]


async def test_a_question_for_newer_metadata_is_answered_at_once_if_there_is_some(
    cluster: Coordinators,
) -> None:
    request = wire.MetadataRequest(known_version=1, max_wait_ms=60_000)
    assert (await cluster.ask(METADATA, request)).version > 1


async def test_a_question_for_newer_metadata_ends_with_its_time(cluster: Coordinators) -> None:
    known = (await cluster.metadata()).version
    request = wire.MetadataRequest(known_version=known, max_wait_ms=1)
    assert (await cluster.ask(METADATA, request)).version == known


# -- FindCoordinator ---------------------------------------------------------------------------


async def test_each_key_is_answered_by_itself(cluster: Coordinators) -> None:
    keys = ["", "x" * 256, *(f"id-{i}" for i in range(20))]
    request = wire.FindCoordinatorRequest(type=wire.COORDINATOR_TYPE_TRANSACTION, keys=keys)
    empty, long, *rest = (await cluster.ask(FIND_COORDINATOR, request)).coordinators
    assert (code_of(empty), code_of(long)) == (42, 42)
    assert [each.key for each in rest] == keys[2:]
    found = {each.instance.host for each in rest if not each.HasField("error")}
    missing = {each.error.message for each in rest if each.HasField("error")}
    assert found == {"coordinator-0"}
    assert missing == {"coordinator 1 has not registered yet"}


async def test_groups_are_with_group_coordinators(cluster: Coordinators) -> None:
    request = wire.FindCoordinatorRequest(type=wire.COORDINATOR_TYPE_GROUP, keys=["", "g"])
    empty, missing = (await cluster.ask(FIND_COORDINATOR, request)).coordinators
    assert code_of(empty) == ErrorCode.INVALID_GROUP_ID
    assert code_of(missing) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    registered = registration(0)
    registered.role = wire.SERVICE_ROLE_GROUP_COORDINATOR
    await cluster.ask(REGISTER_INSTANCE, registered)
    found = (await cluster.ask(FIND_COORDINATOR, request)).coordinators[1]
    assert (found.instance.role, found.instance.host) == (registered.role, "broker-0")


async def test_an_instance_that_cannot_be_reached_by_the_caller_is_not_available(
    cluster: Coordinators,
) -> None:
    registered = registration(0)
    registered.role = wire.SERVICE_ROLE_GROUP_COORDINATOR
    registered.listeners[0].name = "inside"
    await cluster.ask(REGISTER_INSTANCE, registered)
    request = wire.FindCoordinatorRequest(type=wire.COORDINATOR_TYPE_GROUP, keys=["g"])
    (answer,) = (await cluster.ask(FIND_COORDINATOR, request)).coordinators
    assert code_of(answer) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer.error.message == "group coordinator 0 has not registered a listener 'default'"


# -- DescribeCluster ---------------------------------------------------------------------------


async def test_operators_are_told_what_each_instance_does(cluster: Coordinators) -> None:
    await create(cluster, "orders", partitions=3)
    cluster.clock.advance(1_000)
    await cluster.register_broker(1)
    answer = await cluster.ask(DESCRIBE_CLUSTER, wire.DescribeClusterRequest())
    metadata = await cluster.metadata()
    assert (answer.cluster_id, answer.version) == (metadata.cluster_id, metadata.version)
    assert (answer.topic_count, answer.partition_count) == (1, 3)
    controller, first, second = answer.instances
    assert [instance.controller for instance in answer.instances] == [True, False, False]
    assert [instance.claim_epoch for instance in answer.instances] == [1, 1, 1]
    assert sorted((first.leader_partitions, second.leader_partitions)) == [1, 2]
    assert controller.leader_partitions == 25, "of the transaction log, beside one other"
    assert second.last_registered_ms == first.last_registered_ms + 1_000


# -- CreateTopics and DeleteTopics -------------------------------------------------------------


async def test_topics_are_created_each_by_itself(cluster: Coordinators) -> None:
    good, bad = (await create(cluster, "orders", "not legal", partitions=4)).topics
    assert (good.name, good.partitions, len(good.topic_id)) == ("orders", 4, 22)
    assert (bad.name, code_of(bad)) == ("not legal", ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert not good.HasField("error")


async def test_a_topic_that_is_named_twice_in_a_request_is_not_created(
    cluster: Coordinators,
) -> None:
    answer = await create(cluster, "orders", "income", "orders")
    assert [code_of(each) for each in answer.topics] == [42, 0, 42]
    assert [topic.name for topic in (await cluster.metadata()).topics] == ["income"]


async def test_a_validated_topic_has_no_id_and_does_not_exist(cluster: Coordinators) -> None:
    (answer,) = (await create(cluster, "orders", partitions=4, validate_only=True)).topics
    assert (answer.topic_id, answer.partitions) == ("", 4)
    assert not (await cluster.metadata()).topics


async def test_topics_are_deleted_by_name_and_by_id(cluster: Coordinators) -> None:
    created = await create(cluster, "orders", "income")
    topic_id = created.topics[1].topic_id
    request = wire.DeleteTopicsRequest(topics=["orders", "none"], topic_ids=[topic_id, "none"])
    answer = await cluster.ask(DELETE_TOPICS, request)
    assert [topic.name for topic in answer.topics] == ["orders", "none", "income", ""]
    assert [code_of(topic) for topic in answer.topics] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        0,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert not (await cluster.metadata()).topics


async def test_topics_can_be_deleted_when_the_disk_is_nearly_full(cluster: Coordinators) -> None:
    await create(cluster, "orders")
    cluster.volumes[0].free_bytes = 0
    (refused,) = (await create(cluster, "income")).topics
    assert code_of(refused) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    await cluster.ask(DELETE_TOPICS, wire.DeleteTopicsRequest(topics=["orders"]))
    assert not (await cluster.metadata()).topics


async def test_topics_get_more_partitions(cluster: Coordinators) -> None:
    await create(cluster, "orders", partitions=2)
    asked = [
        wire.MorePartitions(name="orders", partitions=4),
        wire.MorePartitions(name="none", partitions=4),
    ]
    dry = wire.CreatePartitionsRequest(topics=asked, validate_only=True)
    (checked, _) = (await cluster.ask(CREATE_PARTITIONS, dry)).topics
    assert checked.partitions == 4
    assert len((await cluster.metadata()).topics[0].partitions) == 2
    done, missing = (
        await cluster.ask(CREATE_PARTITIONS, wire.CreatePartitionsRequest(topics=asked))
    ).topics
    assert done.partitions == len((await cluster.metadata()).topics[0].partitions) == 4
    assert code_of(missing) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    again = wire.CreatePartitionsRequest(topics=asked[:1])
    (refused,) = (await cluster.ask(CREATE_PARTITIONS, again)).topics
    assert code_of(refused) == ErrorCode.INVALID_PARTITIONS


# -- DescribeConfigs and IncrementalAlterConfigs -----------------------------------------------


async def alter(
    cluster: Coordinators, *names: str, validate_only: bool = False, **options: str
) -> list[wire.AlterConfigsResult]:
    given = {name.replace("_", "."): text for name, text in options.items()}
    changes = [wire.TopicConfigChange(name=name, set=given) for name in names]
    request = wire.IncrementalAlterConfigsRequest(topics=changes, validate_only=validate_only)
    return list((await cluster.ask(INCREMENTAL_ALTER_CONFIGS, request)).topics)


async def test_options_are_set_shown_and_followed(cluster: Coordinators) -> None:
    new = wire.NewTopic(name="orders", configs={"segment.ms": "7"})
    await cluster.ask(CREATE_TOPICS, wire.CreateTopicsRequest(topics=[new]))
    (dry,) = await alter(cluster, "orders", retention_ms="6", validate_only=True)
    assert dict(dry.configs) == {"retention.ms": "6", "segment.ms": "7"}
    done, missing = await alter(cluster, "orders", "none", retention_ms="5")
    assert dict(done.configs) == {"retention.ms": "5", "segment.ms": "7"}
    assert code_of(missing) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (topic,) = (await cluster.metadata()).topics
    assert dict(topic.configs) == dict(done.configs)
    request = wire.DescribeConfigsRequest(topics=["orders", "none"], keys=["retention.ms"])
    described, unknown = (await cluster.ask(DESCRIBE_CONFIGS, request)).topics
    (entry,) = described.entries
    assert (entry.name, entry.value, entry.is_default) == ("retention.ms", "5", False)
    assert entry.default_value == "604800000"
    assert code_of(unknown) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_all_options_are_described_with_their_meaning(cluster: Coordinators) -> None:
    await create(cluster, "orders")
    request = wire.DescribeConfigsRequest(topics=["orders"])
    (described,) = (await cluster.ask(DESCRIBE_CONFIGS, request)).topics
    names = [entry.name for entry in described.entries]
    assert names == sorted(names)
    assert {"cleanup.policy", "retention.bytes", "max.message.bytes"} <= set(names)
    assert all(entry.documentation and entry.is_default for entry in described.entries)


async def test_a_wrong_option_is_a_value_for_its_topic(cluster: Coordinators) -> None:
    await create(cluster, "orders")
    (refused,) = await alter(cluster, "orders", retention_ms="soon")
    assert code_of(refused) == ErrorCode.INVALID_CONFIG
    assert dict(refused.error.metadata) == {"key": "retention.ms", "value": "soon"}
    new = wire.NewTopic(name="income", configs={"retention": "5"})
    answer = await cluster.ask(CREATE_TOPICS, wire.CreateTopicsRequest(topics=[new]))
    assert code_of(answer.topics[0]) == ErrorCode.INVALID_CONFIG


async def test_less_can_be_kept_when_the_disk_is_nearly_full(cluster: Coordinators) -> None:
    await create(cluster, "orders")
    cluster.volumes[0].free_bytes = 0
    (done,) = await alter(cluster, "orders", retention_bytes="5")
    assert dict(done.configs) == {"retention.bytes": "5"}


# -- RegisterInstance --------------------------------------------------------------------------


async def test_a_registered_instance_learns_its_cluster(cluster: Coordinators) -> None:
    answer = await cluster.register_broker(2)
    metadata = await cluster.metadata()
    assert (answer.cluster_id, answer.layout) == (metadata.cluster_id, metadata.layout)


async def test_a_volume_from_the_past_is_refused(cluster: Coordinators) -> None:
    await cluster.register_broker(0, claim_epoch=5)
    with pytest.raises(StaleClaimEpochError, match="semel recover"):
        await cluster.register_broker(0, claim_epoch=4)


async def test_a_volume_of_another_cluster_is_refused(cluster: Coordinators) -> None:
    request = registration(0)
    request.cluster_id = "another"
    with pytest.raises(InconsistentClusterIdError):
        await cluster.ask(REGISTER_INSTANCE, request)


async def test_no_instance_can_register_in_the_controller_s_place(cluster: Coordinators) -> None:
    request = registration(0, claim_epoch=99)
    request.role = wire.SERVICE_ROLE_COORDINATOR
    with pytest.raises(InvalidRequestError, match="coordinator 0 is the controller itself"):
        await cluster.ask(REGISTER_INSTANCE, request)


async def test_an_address_is_free_once_its_instance_is_silent(cluster: Coordinators) -> None:
    taking = registration(2)
    taking.listeners[0].host = "broker-0"
    with pytest.raises(CoordinatorNotAvailableError, match="registered a moment ago"):
        await cluster.ask(REGISTER_INSTANCE, taking)
    cluster.clock.advance(15_000)
    await cluster.ask(REGISTER_INSTANCE, taking)
    hosts = [instance.host for instance in (await cluster.metadata()).instances]
    assert hosts == ["coordinator-0", "", "broker-1", "broker-0"]


# -- form --------------------------------------------------------------------------------------


async def test_nothing_is_stored_of_a_request_in_bad_form(cluster: Coordinators) -> None:
    before = await cluster.metadata()
    request = registration(7)
    request.listeners[0].port = 0
    with pytest.raises(InvalidRequestError, match=r"listeners\.port is 0: must be 1 to 65535"):
        await cluster.ask(REGISTER_INSTANCE, request)
    with pytest.raises(InvalidRequestError, match="topics has 0 entries"):
        await create(cluster)
    with pytest.raises(InvalidRequestError, match="topics and topic_ids are both empty"):
        await cluster.ask(DELETE_TOPICS, wire.DeleteTopicsRequest())
    with pytest.raises(InvalidRequestError, match="topics has 0 entries"):
        await cluster.ask(DESCRIBE_CONFIGS, wire.DescribeConfigsRequest())
    twice = [wire.MorePartitions(name="orders", partitions=2)] * 2
    with pytest.raises(InvalidRequestError, match="topics names 'orders' 2 times"):
        await cluster.ask(CREATE_PARTITIONS, wire.CreatePartitionsRequest(topics=twice))
    with pytest.raises(InvalidRequestError, match="topics names 'orders' 2 times"):
        await alter(cluster, "orders", "orders", retention_ms="5")
    assert await cluster.metadata() == before
