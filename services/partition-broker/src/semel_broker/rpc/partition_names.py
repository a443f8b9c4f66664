"""How requests name partitions: by topic name, by topic id, or by both."""

from typing import Protocol

from semel_broker.machine.values import IsolationLevel, PartitionName
from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import ID_LENGTH_MAX, TOPIC_NAME_LENGTH_MAX
from semel_runtime.server.form_checks import INT32_MAX, require_int, require_known, require_name


class NamesPartition(Protocol):
    """A part of a request that is about one partition."""

    @property
    def topic(self) -> str:
        """A name, or empty."""
        ...

    @property
    def topic_id(self) -> str:
        """An id, or empty."""
        ...

    @property
    def partition(self) -> int:
        """A number, from 0."""
        ...


def partition_name(message: NamesPartition) -> PartitionName:
    """Return the partition that a part of a request names. Raises InvalidRequestError."""
    topic, topic_id = message.topic, message.topic_id
    if topic_id:
        require_name("topic_id", topic_id, length_max=ID_LENGTH_MAX)
    if topic:
        require_name("topic", topic, length_max=TOPIC_NAME_LENGTH_MAX)
    elif not topic_id:
        raise InvalidRequestError("topic and topic_id are empty: one must be given", field="topic")
    partition = require_int("partition", message.partition, maximum=INT32_MAX)
    return PartitionName(topic=topic, topic_id=topic_id, partition=partition)


def isolation_level(value: int) -> IsolationLevel:
    """Return an isolation level; without one, READ_COMMITTED. Raises InvalidRequestError."""
    require_known("isolation_level", value, (0, *IsolationLevel))
    return IsolationLevel(value or IsolationLevel.READ_COMMITTED)
