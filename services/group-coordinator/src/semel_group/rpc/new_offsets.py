"""Offsets that a client commits, in a transaction or not."""

from collections.abc import Sequence

from semel.group.v1 import group_pb2 as wire
from semel_common.wire.messages.request_bounds import OFFSETS_MAX
from semel_group.machine.values import NewOffset
from semel_group.rpc.partition_names import check_partition_count, partition_number, topic_name
from semel_runtime.server.form_checks import require_count, require_int


def new_offsets(topics: Sequence[wire.OffsetCommitTopic]) -> list[NewOffset]:
    """Return the offsets of a request; at least one."""
    check_partition_count("topics", topics)
    offsets = [_new_offset(topic, partition) for topic in topics for partition in topic.partitions]
    require_count("topics.partitions", offsets, minimum=1, maximum=OFFSETS_MAX)
    return offsets


def _new_offset(topic: wire.OffsetCommitTopic, offset: wire.OffsetCommitPartition) -> NewOffset:
    return NewOffset(
        topic=topic_name(topic),
        partition=partition_number(offset.partition),
        committed_offset=require_int("committed_offset", offset.committed_offset),
        metadata=offset.metadata,
    )
