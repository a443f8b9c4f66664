"""Partitions of groups and of the transaction log, under the names that they have in Kafka.

The layout names their leaders until they are moved; from then on, their records name the leaders.
"""

from semel_common.errors import InvalidRequestError, UnknownTopicOrPartitionError
from semel_common.ids import InternalTopic, owner_of
from semel_coordinator.controller.machine.state import ControllerState
from semel_runtime.cluster.metadata_image import Layout, PartitionLeader, ServiceRole, Topic

_ROLES = {
    InternalTopic.CONSUMER_OFFSETS: ServiceRole.GROUP_COORDINATOR,
    InternalTopic.TRANSACTION_STATE: ServiceRole.COORDINATOR,
}


def find_internal(topic: str) -> InternalTopic | None:
    """Return the internal topic of this name, which is its id too."""
    return next((each for each in InternalTopic if each == topic), None)


def leading_role(topic: Topic | InternalTopic) -> ServiceRole:
    """Return what leads a topic's partitions."""
    return _ROLES[topic] if isinstance(topic, InternalTopic) else ServiceRole.BROKER


def topics_led_by(state: ControllerState, role: ServiceRole) -> list[Topic]:
    """Return all topics, or an internal one as if it were a topic, with the leaders."""
    if role is ServiceRole.BROKER:
        return [record.topic for record in state.topics.values()]
    layout = state.made_cluster().layout
    return [
        Topic(
            topic_id=topic.value,
            name=topic.value,
            partitions=tuple(
                _leader(state, topic, each) for each in range(_sizes(layout)[topic][0])
            ),
        )
        for topic, its_role in _ROLES.items()
        if its_role is role
    ]


def internal_leader(
    state: ControllerState, topic: InternalTopic, partition: int
) -> PartitionLeader:
    """Return who leads a partition of an internal topic. Raises UnknownTopicOrPartitionError."""
    partition_count, _ = _sizes(state.made_cluster().layout)[topic]
    if not 0 <= partition < partition_count:
        raise UnknownTopicOrPartitionError(
            f"topic {topic.value!r} has no partition {partition}: it has {partition_count}"
        )
    return _leader(state, topic, partition)


def check_may_leave(topic: Topic | InternalTopic, partition: int) -> None:
    """Raise InvalidRequestError for the one partition that is never led by anybody else."""
    if topic is InternalTopic.TRANSACTION_STATE and partition == 0:
        raise InvalidRequestError(
            f"partition 0 of {topic.value} cannot be moved: the controller keeps it",
            field="partition",
        )


def _leader(state: ControllerState, topic: InternalTopic, partition: int) -> PartitionLeader:
    moved = state.internal.get((topic, partition))
    if moved is not None:
        return moved[1].internal.leader
    _, instance_count = _sizes(state.made_cluster().layout)[topic]
    return PartitionLeader(owner_of(partition, instance_count), 0)


def _sizes(layout: Layout) -> dict[InternalTopic, tuple[int, int]]:
    """Return how many partitions each has, and how many instances led them at first."""
    return {
        InternalTopic.CONSUMER_OFFSETS: (layout.group_partitions, layout.group_coordinators),
        InternalTopic.TRANSACTION_STATE: (layout.transaction_log_partitions, layout.coordinators),
    }
