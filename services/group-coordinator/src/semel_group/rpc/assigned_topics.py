"""Partitions of members, as answers hold them."""

from collections.abc import Iterable

from semel.group.v1 import group_pb2 as wire
from semel_common.ids import TopicPartition
from semel_group.machine.topics import Topics


def assignment(partitions: Iterable[TopicPartition], topics: Topics) -> wire.Assignment:
    """Return the partitions that a member is to hold."""
    return wire.Assignment(topics=assigned_topics(partitions, topics))


def assigned_topics(
    partitions: Iterable[TopicPartition], topics: Topics
) -> list[wire.AssignedTopic]:
    """Return partitions by topic, with names; a deleted topic has an empty name."""
    by_topic: dict[str, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(partition)
    return [
        wire.AssignedTopic(
            topic_id=topic_id, topic=topics.name_of(topic_id).topic, partitions=numbers
        )
        for topic_id, numbers in by_topic.items()
    ]
