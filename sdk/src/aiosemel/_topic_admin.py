"""Topics, as the admin client creates, changes and deletes them."""

import asyncio

from aiosemel import _describe
from aiosemel._cluster import Cluster
from aiosemel._metadata import TopicMetadata
from aiosemel._retry import Deadline
from aiosemel.descriptions import ConfigDescription
from aiosemel.errors import TopicAlreadyExistsError
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.wire import methods, status
from semel_common.wire.methods import Method, Req, Res


async def create(
    cluster_: Cluster, new: cluster.NewTopic, deadline: Deadline, *, exist_ok: bool
) -> TopicMetadata:
    """Create a topic, and return it, once this client knows of it.

    What the client knew by that name, somebody else may have deleted since.
    """
    before = cluster_.cached_topic(new.name)
    try:
        await _create(cluster_, new, deadline)
    except TopicAlreadyExistsError:
        if not exist_ok:
            raise
        if before is not None:
            await cluster_.refresh(deadline)
        return await cluster_.topic(new.name, deadline)
    if before is None:
        return await cluster_.topic(new.name, deadline)
    cluster_.known.forget_topic(new.name)
    pauses = cluster_.backoff()
    while (topic := await cluster_.topic(new.name, deadline)).topic_id == before.topic_id:
        cluster_.known.forget_topic(new.name)  # Who answered lags behind.
        await asyncio.sleep(min(next(pauses), deadline.remaining_ms()) / 1000)
    return topic


async def _create(cluster_: Cluster, new: cluster.NewTopic, deadline: Deadline) -> None:
    """Create a topic; until the deadline, wait for brokers that it can be spread over."""

    async def once() -> None:
        request = cluster.CreateTopicsRequest(topics=[new])
        response = await _ask(cluster_, methods.CREATE_TOPICS, request, deadline)
        for topic in response.topics:
            if topic.HasField("error"):
                raise status.from_value(topic.error)

    await cluster_.insist(once, deadline=deadline)


async def delete(cluster_: Cluster, name: str, deadline: Deadline) -> None:
    """Delete a topic."""
    request = cluster.DeleteTopicsRequest(topics=[name])
    response = await _ask(cluster_, methods.DELETE_TOPICS, request, deadline)
    cluster_.known.forget_topic(name)
    for topic in response.topics:
        if topic.HasField("error"):
            raise status.from_value(topic.error)


async def add_partitions(
    cluster_: Cluster, more: cluster.MorePartitions, deadline: Deadline, *, validate_only: bool
) -> int:
    """Give a topic more partitions; returns how many it has, once this client knows of them."""
    request = cluster.CreatePartitionsRequest(topics=[more], validate_only=validate_only)
    (answered,) = (await _ask(cluster_, methods.CREATE_PARTITIONS, request, deadline)).topics
    if answered.HasField("error"):
        raise status.from_value(answered.error)
    if not validate_only:
        await _until_known(cluster_, more.name, answered.partitions, deadline)
    return answered.partitions


async def _until_known(cluster_: Cluster, topic: str, partitions: int, deadline: Deadline) -> None:
    """Wait until this client knows of that many partitions: a coordinator may lag behind."""
    pauses = cluster_.backoff()
    while len((await cluster_.topic(topic, deadline)).partitions) < partitions:
        await asyncio.sleep(min(next(pauses), deadline.remaining_ms()) / 1000)
        await cluster_.refresh(deadline)


async def describe_configs(
    cluster_: Cluster, topic: str, deadline: Deadline
) -> dict[str, ConfigDescription]:
    """Return all options of a topic, by name."""
    request = cluster.DescribeConfigsRequest(topics=[topic])
    (described,) = (await _ask(cluster_, methods.DESCRIBE_CONFIGS, request, deadline)).topics
    if described.HasField("error"):
        raise status.from_value(described.error)
    return {entry.name: _describe.config(entry) for entry in described.entries}


async def alter_configs(
    cluster_: Cluster, change: cluster.TopicConfigChange, deadline: Deadline, *, validate_only: bool
) -> dict[str, str]:
    """Change some options of a topic; returns those that are set then."""
    request = cluster.IncrementalAlterConfigsRequest(topics=[change], validate_only=validate_only)
    response = await _ask(cluster_, methods.INCREMENTAL_ALTER_CONFIGS, request, deadline)
    (altered,) = response.topics
    if altered.HasField("error"):
        raise status.from_value(altered.error)
    return dict(altered.configs)


async def _ask(
    cluster_: Cluster, method: Method[Req, Res], request: Req, deadline: Deadline
) -> Res:
    route = cluster_.any_coordinator()
    return await cluster_.call(route, method, request, deadline=deadline)
