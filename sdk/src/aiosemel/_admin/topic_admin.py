"""Topics, as the admin client creates, changes and deletes them."""

import asyncio

from aiosemel._cluster import from_wire
from aiosemel._cluster.metadata import TopicMetadata
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import (
    RetriableError,
    SemelError,
    TopicAlreadyExistsError,
    TopicNotFoundError,
    UnknownTopicOrPartitionError,
)
from aiosemel.types.descriptions import ConfigDescription
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.library_log import get_logger
from semel_common.wire import methods, status
from semel_common.wire.methods import METADATA, Method, Req, Res

_log = get_logger(__name__)


async def create(
    cluster_: Cluster, new: cluster.NewTopic, deadline: Deadline, *, exist_ok: bool
) -> TopicMetadata:
    """Create a topic, and return it, once this client knows of it.

    Another client may have deleted the topic that this client knew by that name.
    """
    before = cluster_.cache.cached_topic(new.name)
    try:
        await _create(cluster_, new, deadline)
    except TopicAlreadyExistsError:
        if not exist_ok:
            raise
        if before is not None:
            await cluster_.cache.refresh(deadline)
        return await cluster_.cache.topic(new.name, deadline)
    if before is None:
        return await cluster_.cache.topic(new.name, deadline)
    cluster_.cache.forget_topic(new.name)
    pauses = cluster_.backoff()
    while (topic := await cluster_.cache.topic(new.name, deadline)).topic_id == before.topic_id:
        cluster_.cache.forget_topic(new.name)  # Who answered lags behind.
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
    cluster_.cache.forget_topic(name)
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
    while len((await cluster_.cache.topic(topic, deadline)).partitions) < partitions:
        await asyncio.sleep(min(next(pauses), deadline.remaining_ms()) / 1000)
        await cluster_.cache.refresh(deadline)


async def describe_configs(
    cluster_: Cluster, topic: str, deadline: Deadline
) -> dict[str, ConfigDescription]:
    """Return all options of a topic, by name."""
    request = cluster.DescribeConfigsRequest(topics=[topic])
    (described,) = (await _ask(cluster_, methods.DESCRIBE_CONFIGS, request, deadline)).topics
    if described.HasField("error"):
        raise status.from_value(described.error)
    return {entry.name: from_wire.config(entry) for entry in described.entries}


async def alter_configs(
    cluster_: Cluster, change: cluster.TopicConfigChange, deadline: Deadline, *, validate_only: bool
) -> dict[str, str]:
    """Change some options of a topic; returns the options that are set afterwards."""
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


async def with_controllers_word(
    cluster_: Cluster, response: cluster.MetadataResponse, deadline: Deadline
) -> cluster.MetadataResponse:
    """Return an answer for topics; what its instance does not know, the controller is asked for.

    A topic that another client has just created may be on its way to the instance. While the
    controller is away, the answer of the instance holds.
    """
    if not any(
        isinstance(_error(topic), UnknownTopicOrPartitionError) for topic in response.topics
    ):
        return response
    names = [topic.name for topic in response.topics]
    request = cluster.MetadataRequest(topics=names, from_controller=True)
    route = cluster_.any_coordinator()
    try:
        known = await cluster_.attempt(route, METADATA, request, deadline=deadline)
    except RetriableError as error:
        _log.debug("the controller does not answer, an instance has: %s", error)
        return response
    for topic in known.topics:
        found = _error(topic)
        if isinstance(found, TopicNotFoundError):
            missing = UnknownTopicOrPartitionError(found.message, **found.details)
            topic.error.CopyFrom(status.to_value(missing))
    return known


def _error(topic: cluster.Topic) -> SemelError | None:
    return status.from_value(topic.error) if topic.HasField("error") else None
