"""Messages of the marker fan-out to participants and to the controller, and their answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from semel.common.v1 import errors_pb2, participants_pb2
from semel.coordinator.v1 import cluster_pb2
from semel_common.ids import (
    GroupId,
    Participant,
    TopicPartition,
    transaction_log_partition_of,
)
from semel_coordinator.transactions.machine.state.entities import ParticipantSet, in_order
from semel_coordinator.transactions.markers.marker import Marker
from semel_coordinator.transactions.rpc.participant_messages import write_participants


def markers_request(
    batch: Sequence[Marker],
    *,
    cluster_id: str,
    coordinator_epoch: Callable[[int], int],
    awaited: bool,
) -> participants_pb2.WriteTxnMarkersRequest:
    """Ask to write a batch; `coordinator_epoch` knows those of transaction-log partitions."""
    request = participants_pb2.WriteTxnMarkersRequest(cluster_id=cluster_id, awaited=awaited)
    for marker in batch:
        out = request.markers.add()
        out.producer_id, out.producer_epoch = marker.key
        out.result = (
            participants_pb2.TRANSACTION_RESULT_COMMIT
            if marker.commit
            else participants_pb2.TRANSACTION_RESULT_ABORT
        )
        out.coordinator_epoch = coordinator_epoch(
            transaction_log_partition_of(marker.key.producer_id)
        )
        out.traceparent = marker.traceparent
        write_participants(marker.participants, out.participants)
    return request


def refusing(errors: Iterable[participants_pb2.ParticipantError]) -> ParticipantSet:
    """Return the participants that have not taken a marker."""
    return in_order(_participant(error.participant) for error in errors)


def topic_ids_of(batch: Iterable[Marker]) -> list[str]:
    """Return the topics of a batch that has partitions only."""
    return list(
        dict.fromkeys(_topic_id(participant) for m in batch for participant in m.participants)
    )


def not_gone(
    batch: Iterable[Marker], topics: Iterable[cluster_pb2.Topic]
) -> Mapping[int, ParticipantSet]:
    """Return the partitions that the controller does not call deleted, by the marker's index."""
    known = {topic.topic_id: topic for topic in topics}
    return {
        index: in_order(
            participant for participant in marker.participants if not _is_gone(participant, known)
        )
        for index, marker in enumerate(batch)
    }


def _is_gone(participant: Participant, topics: Mapping[str, cluster_pb2.Topic]) -> bool:
    assert isinstance(participant, TopicPartition), "groups always have a coordinator"
    topic = topics.get(participant.topic_id)
    if topic is None:
        return False
    if topic.HasField("error"):
        return topic.error.code == errors_pb2.ERROR_CODE_UNKNOWN_TOPIC_ID
    return all(partition.index != participant.partition for partition in topic.partitions)


def _topic_id(participant: Participant) -> str:
    assert isinstance(participant, TopicPartition), "groups always have a coordinator"
    return participant.topic_id


def _participant(message: participants_pb2.Participant) -> Participant:
    if message.HasField("topic_partition"):
        place = message.topic_partition
        return TopicPartition(place.topic_id, place.partition)
    return GroupId(message.group_id)
