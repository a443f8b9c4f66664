"""What requests and responses share: participants on the wire, checked when they come in."""

from collections.abc import Iterable
from typing import assert_never

from semel.common.v1 import participants_pb2 as participants_wire
from semel_common.errors import InvalidRequestError
from semel_common.ids import GroupId, Participant, TopicPartition
from semel_coordinator.transactions.machine import TransactionLimits
from semel_runtime.server.form_checks import INT32_MAX, require_int, require_name

TopicsOnWire = Iterable[participants_wire.TopicPartitions]


def topic_partitions_from_wire(
    field: str, topics: TopicsOnWire, limits: TransactionLimits
) -> list[TopicPartition]:
    """Read partitions grouped by topic. Raises InvalidRequestError naming field and value."""
    found: list[TopicPartition] = []
    for index, each in enumerate(topics):
        topic_id = each.topic_id
        # The names of fields are put together only for messages: this is the hot path.
        if not 0 < len(topic_id) <= limits.topic_id_length_max:
            require_name(
                f"{field}[{index}].topic_id", topic_id, length_max=limits.topic_id_length_max
            )
        for partition in each.partitions:
            if partition < 0:
                require_int(f"{field}[{index}].partitions", partition, maximum=INT32_MAX)
            found.append(TopicPartition(topic_id, partition))
    return found


def participants_from_wire(
    field: str, message: participants_wire.Participants, limits: TransactionLimits
) -> list[Participant]:
    """Read participants. Raises InvalidRequestError naming field and value."""
    found: list[Participant] = []
    found += topic_partitions_from_wire(f"{field}.topics", message.topics, limits)
    for index, group_id in enumerate(message.group_ids):
        require_name(f"{field}.group_ids[{index}]", group_id, length_max=limits.group_id_length_max)
        found.append(GroupId(group_id))
    return found


def participant_from_wire(
    field: str, message: participants_wire.Participant, limits: TransactionLimits
) -> Participant:
    """Read one participant. Raises InvalidRequestError naming field and value."""
    match message.WhichOneof("participant"):
        case "topic_partition":
            place = message.topic_partition
            require_name(f"{field}.topic_id", place.topic_id, length_max=limits.topic_id_length_max)
            require_int(f"{field}.partition", place.partition, maximum=INT32_MAX)
            return TopicPartition(place.topic_id, place.partition)
        case "group_id":
            length_max = limits.group_id_length_max
            return GroupId(
                require_name(f"{field}.group_id", message.group_id, length_max=length_max)
            )
        case None:
            raise InvalidRequestError(f"{field} is not given", field=field)
        case unreachable:
            assert_never(unreachable)


def write_participants(
    participants: Iterable[Participant], out: participants_wire.Participants
) -> None:
    """Add participants to a message, partitions grouped by topic."""
    topics: dict[str, participants_wire.TopicPartitions] = {}
    for participant in participants:
        if isinstance(participant, GroupId):
            out.group_ids.append(participant.group_id)
            continue
        topic = topics.get(participant.topic_id)
        if topic is None:
            topic = topics[participant.topic_id] = out.topics.add(topic_id=participant.topic_id)
        topic.partitions.append(participant.partition)
