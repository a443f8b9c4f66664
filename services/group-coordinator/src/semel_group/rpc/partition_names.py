"""How requests name partitions: by topic name, by topic id, or by both."""

from collections.abc import Sequence
from typing import Protocol

from semel.group.v1 import group_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import (
    ID_LENGTH_MAX,
    OFFSETS_MAX,
    TOPIC_NAME_LENGTH_MAX,
)
from semel_group.machine.values import NamedPartition, TopicName
from semel_runtime.server.form_checks import INT32_MAX, require_count, require_int, require_name


class _Topic(Protocol):
    @property
    def topic(self) -> str: ...
    @property
    def topic_id(self) -> str: ...


class _WithPartitions(Protocol):
    @property
    def partitions(self) -> Sequence[object]: ...


def named_partitions(topics: Sequence[wire.OffsetFetchTopic]) -> list[NamedPartition]:
    """Return the partitions that a request names, topic by topic."""
    check_partition_count("topics", topics)
    return [
        NamedPartition(topic_name(topic), partition_number(partition))
        for topic in topics
        for partition in topic.partitions
    ]


def topic_name(message: _Topic) -> TopicName:
    """Return the topic that a part of a request names. Raises InvalidRequestError."""
    if not message.topic and not message.topic_id:
        raise InvalidRequestError("topic and topic_id are empty: one must be given", field="topic")
    if message.topic:
        require_name("topic", message.topic, length_max=TOPIC_NAME_LENGTH_MAX)
    if message.topic_id:
        topic_id("topic_id", message.topic_id)
    return TopicName(message.topic, message.topic_id)


def topic_id(field: str, value: str) -> str:
    """Return a topic id. Raises InvalidRequestError."""
    return require_name(field, value, length_max=ID_LENGTH_MAX)


def partition_number(value: int) -> int:
    """Return the number of a partition. Raises InvalidRequestError."""
    return require_int("partition", value, maximum=INT32_MAX)


def check_partition_count(field: str, topics: Sequence[_WithPartitions]) -> None:
    """Refuse more topics or partitions than a request may name. Raises InvalidRequestError."""
    require_count(field, topics, maximum=OFFSETS_MAX)
    count = sum(len(topic.partitions) for topic in topics)
    require_count(f"{field}.partitions", range(count), maximum=OFFSETS_MAX)
