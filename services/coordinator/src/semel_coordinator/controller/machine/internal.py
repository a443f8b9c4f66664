"""Partitions of groups and of the transaction log, under the names that they have in Kafka.

They are led as the layout says until they are moved; from then on by whom their records name.
"""

from semel_common.errors import InvalidRequestError, UnknownTopicOrPartitionError
from semel_common.ids import InternalTopic, owner_of
from semel_coordinator.controller.machine.state import ControllerState, InstanceKey
from semel_runtime.cluster.image import PartitionLeader, ServiceRole

_LEADERS = {
    InternalTopic.CONSUMER_OFFSETS: ServiceRole.GROUP_COORDINATOR,
    InternalTopic.TRANSACTION_STATE: ServiceRole.COORDINATOR,
}


def find_internal(topic: str) -> InternalTopic | None:
    """Return the internal topic of this name, which is its id too."""
    return next((each for each in InternalTopic if each == topic), None)


def internal_leader(
    state: ControllerState, topic: InternalTopic, partition: int
) -> PartitionLeader:
    """Return who leads a partition of an internal topic. Raises UnknownTopicOrPartitionError."""
    layout = state.made_cluster().layout
    counts = {
        InternalTopic.CONSUMER_OFFSETS: (layout.group_partitions, layout.group_coordinators),
        InternalTopic.TRANSACTION_STATE: (layout.transaction_log_partitions, layout.coordinators),
    }
    partition_count, instance_count = counts[topic]
    if not 0 <= partition < partition_count:
        raise UnknownTopicOrPartitionError(
            f"topic {topic.value!r} has no partition {partition}: it has {partition_count}"
        )
    moved = state.internal.get((topic, partition))
    if moved is not None:
        return moved[1].internal.leader
    return PartitionLeader(owner_of(partition, instance_count), 0)


def check_internal_move(
    state: ControllerState, topic: InternalTopic, partition: int, instance_id: int | None
) -> None:
    """Raise InvalidRequestError unless a partition may move to an instance; None: to nowhere."""
    if instance_id is None:
        return
    if topic is InternalTopic.TRANSACTION_STATE and partition == 0:
        raise InvalidRequestError(
            f"partition 0 of {topic.value} cannot be moved: the controller keeps it",
            field="partition",
        )
    key = InstanceKey(_LEADERS[topic], instance_id)
    if key not in state.instances:
        raise InvalidRequestError(f"no {key} has ever registered", field="broker_id")
