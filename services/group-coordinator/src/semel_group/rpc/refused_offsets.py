"""Partitions whose offsets a request did not change, with the reasons."""

from semel.group.v1 import group_pb2 as wire
from semel_common.wire.status import to_value
from semel_group.machine.values import RefusedOffset


def refused_offset(refused: RefusedOffset) -> wire.OffsetPartitionError:
    """Return the error of one partition as a message."""
    return wire.OffsetPartitionError(
        topic=refused.topic.topic,
        topic_id=refused.topic.topic_id,
        partition=refused.partition,
        error=to_value(refused.error),
    )
