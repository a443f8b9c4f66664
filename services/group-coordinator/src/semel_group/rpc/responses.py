"""What the machine answered, as messages."""

from collections.abc import Iterable, Sequence

from semel.common.v1 import participants_pb2 as participants
from semel.group.v1 import group_pb2 as wire
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.ids import TopicPartition
from semel_common.wire.status import to_value
from semel_group.machine.topics import Topics
from semel_group.machine.values import (
    FetchedOffset,
    GroupDescription,
    GroupListing,
    MemberDescription,
    PendingDescription,
    RefusedMarker,
    RefusedOffset,
)


def assigned_topics(
    partitions: Iterable[TopicPartition], topics: Topics
) -> list[wire.AssignedTopic]:
    """Return partitions by topic, with names; of a deleted topic the name is empty."""
    by_topic: dict[str, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(partition)
    return [
        wire.AssignedTopic(
            topic_id=topic_id, topic=topics.name_of(topic_id).topic, partitions=numbers
        )
        for topic_id, numbers in by_topic.items()
    ]


def assignment(partitions: Iterable[TopicPartition], topics: Topics) -> wire.Assignment:
    """Return what a member is to hold."""
    return wire.Assignment(topics=assigned_topics(partitions, topics))


def refused_offset(refused: RefusedOffset) -> wire.OffsetPartitionError:
    """Return why an offset was not committed."""
    return wire.OffsetPartitionError(
        topic=refused.topic.topic,
        topic_id=refused.topic.topic_id,
        partition=refused.partition,
        error=to_value(refused.error),
    )


def fetched_offset(fetched: FetchedOffset) -> wire.FetchedOffset:
    """Return a committed offset, or why there is none in the answer."""
    return wire.FetchedOffset(
        topic_id=fetched.topic.topic_id,
        topic=fetched.topic.topic,
        partition=fetched.partition,
        error=None if fetched.error is None else to_value(fetched.error),
        committed_offset=fetched.committed_offset,
        metadata=fetched.metadata,
    )


def marker_result(
    marker: participants.TxnMarker, refused: Sequence[RefusedMarker]
) -> participants.TxnMarkerResult:
    """Return which participants did not take a marker; partitions never do."""
    result = participants.TxnMarkerResult()
    for offset in refused:
        group = participants.Participant(group_id=offset.group_id)
        result.errors.add(participant=group, error=to_value(offset.error))
    for topic in marker.participants.topics:
        for partition in topic.partitions:
            place = participants.TopicPartition(topic_id=topic.topic_id, partition=partition)
            error = InvalidRequestError("a group coordinator holds no partitions")
            result.errors.add(
                participant=participants.Participant(topic_partition=place), error=to_value(error)
            )
    return result


def group_listing(listing: GroupListing) -> wire.GroupListing:
    """Return one group in a list."""
    return wire.GroupListing(
        group_id=listing.group_id,
        state=listing.state.value,  # type: ignore[arg-type]  # equal numbers
        member_count=listing.member_count,
    )


def group_description(
    group_id: str, description: GroupDescription | SemelError, topics: Topics
) -> wire.GroupDescription:
    """Return one group, or why it cannot be described."""
    if isinstance(description, SemelError):
        return wire.GroupDescription(group_id=group_id, error=to_value(description))
    return wire.GroupDescription(
        group_id=group_id,
        state=description.state.value,  # type: ignore[arg-type]  # equal numbers
        group_epoch=description.group_epoch,
        assignor=description.assignor,
        members=[_member(member, topics) for member in description.members],
        pending=[_pending(each, topics) for each in description.pending],
    )


def _member(member: MemberDescription, topics: Topics) -> wire.MemberDescription:
    return wire.MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        member_epoch=member.member_epoch,
        subscribed_topics=member.subscribed_topics,
        assignment=assigned_topics(member.assignment, topics),
        target=assigned_topics(member.target, topics),
    )


def _pending(pending: PendingDescription, topics: Topics) -> wire.PendingTransaction:
    message = wire.PendingTransaction(
        producer_id=pending.producer_id,
        producer_epoch=pending.producer_epoch,
        start_time_ms=pending.start_time_ms,
    )
    by_topic: dict[str, wire.OffsetCommitTopic] = {}
    for (topic_id, partition), committed_offset in pending.offsets:
        if topic_id not in by_topic:
            name = topics.name_of(topic_id).topic
            by_topic[topic_id] = message.topics.add(topic_id=topic_id, topic=name)
        by_topic[topic_id].partitions.add(partition=partition, committed_offset=committed_offset)
    return message
