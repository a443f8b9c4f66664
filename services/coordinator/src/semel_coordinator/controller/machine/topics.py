"""Deciding on topics: their names, their number, and who leads their partitions."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from semel_common.errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    ThrottlingQuotaExceededError,
    TopicAlreadyExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel_coordinator.controller.machine.instances import open_instances
from semel_coordinator.controller.machine.internal import find_internal
from semel_coordinator.controller.machine.limits import ControllerLimits
from semel_coordinator.controller.machine.placement import spread
from semel_coordinator.controller.machine.state import ControllerState
from semel_coordinator.controller.machine.topic_names import check_topic_name, collision_key
from semel_runtime.cluster.metadata_image import PartitionLeader, ServiceRole, Topic
from semel_runtime.cluster.topic_options import Overrides, altered


class NewTopic(Struct, frozen=True, kw_only=True):
    """A topic to be created."""

    name: str
    topic_id: str
    """Never given to a topic before."""
    partition_count: int
    """0: the cluster's default."""
    configs: Overrides = ()
    """Its options, as they were given."""


def created(state: ControllerState, limits: ControllerLimits, new: NewTopic) -> Topic:
    """Return a new topic with its partitions spread over the brokers that may lead any.

    Raises InvalidTopicError, TopicAlreadyExistsError, InvalidPartitionsError, InvalidConfigError,
    ThrottlingQuotaExceededError (past a limit of the cluster), and BrokerNotAvailableError as long
    as no broker has registered that is not decommissioned.
    """
    assert new.topic_id not in state.topics, f"topic id {new.topic_id} was given twice"
    _check_name(state, new.name)
    partition_count = new.partition_count or limits.num_partitions
    _check_partition_count(limits, new.name, partition_count)
    configs = altered((), set_=dict(new.configs))
    _check_room(state, limits, new.name, partition_count)
    leaders = _leaders(state, new.name, partition_count)
    return Topic(topic_id=new.topic_id, name=new.name, partitions=leaders, configs=configs)


def enlarged(
    state: ControllerState, limits: ControllerLimits, topic: Topic, partition_count: int
) -> Topic:
    """Return a topic with more partitions; the present ones stay where they are.

    Raises InvalidPartitionsError, ThrottlingQuotaExceededError, BrokerNotAvailableError.
    """
    now = len(topic.partitions)
    if partition_count <= now:
        raise InvalidPartitionsError(
            f"topic {topic.name!r} has {now} partitions already: it can only get more than that,"
            f" not {partition_count}"
        )
    _check_partition_count(limits, topic.name, partition_count)
    more = partition_count - now
    _check_partition_room(state, limits, topic.name, more)
    return replace(topic, partitions=topic.partitions + _leaders(state, topic.name, more))


def reconfigured(topic: Topic, *, set_: Mapping[str, str], reset: Iterable[str]) -> Topic:
    """Return a topic with other options; raises InvalidConfigError."""
    return replace(topic, configs=altered(topic.configs, set_=set_, reset=reset))


def named(state: ControllerState, name: str) -> Topic:
    """Return a topic. Raises UnknownTopicOrPartitionError."""
    if name not in state.topic_ids:
        raise UnknownTopicOrPartitionError(f"no topic is named {name!r}")
    return state.topics[state.topic_ids[name]].topic


def identified(state: ControllerState, topic_id: str) -> Topic:
    """Return a topic. Raises UnknownTopicIdError."""
    if topic_id not in state.topics:
        raise UnknownTopicIdError(f"no topic has the id {topic_id!r}")
    return state.topics[topic_id].topic


def _check_name(state: ControllerState, name: str) -> None:
    check_topic_name(name)
    if find_internal(name) is not None:
        raise InvalidTopicError(f"topic {name!r} is internal: its name is taken")
    other = state.names.get(collision_key(name))
    if other == name:
        raise TopicAlreadyExistsError(f"topic {name!r} exists already")
    if other is not None:
        raise InvalidTopicError(
            f"topic {name!r} collides with {other!r}: '.' and '_' count as the same character"
        )


def _check_partition_count(limits: ControllerLimits, name: str, partition_count: int) -> None:
    if not 1 <= partition_count <= limits.topic_partitions_max:
        raise InvalidPartitionsError(
            f"topic {name!r} cannot have {partition_count} partitions: "
            f"must be 1 to {limits.topic_partitions_max}"
        )


def _check_room(
    state: ControllerState, limits: ControllerLimits, name: str, partition_count: int
) -> None:
    if len(state.topics) >= limits.topics_max:
        raise ThrottlingQuotaExceededError(
            f"topic {name!r} is one too many: the cluster may have {limits.topics_max}"
        )
    _check_partition_room(state, limits, name, partition_count)


def _check_partition_room(
    state: ControllerState, limits: ControllerLimits, name: str, partition_count: int
) -> None:
    if state.partition_count + partition_count > limits.partitions_max:
        raise ThrottlingQuotaExceededError(
            f"topic {name!r} with {partition_count} new partitions is too much: the cluster has "
            f"{state.partition_count} and may have {limits.partitions_max}"
        )


def _leaders(
    state: ControllerState, name: str, partition_count: int
) -> tuple[PartitionLeader, ...]:
    brokers = open_instances(state, ServiceRole.BROKER, f"lead {name!r}")
    return spread(partition_count, brokers=brokers, led=state.led, start=state.version)
