"""The checks of the answers of group coordinators."""

from collections.abc import Iterable

from aiosemel._answers.fields import (
    Unfit,
    at_least,
    counted,
    distinct,
    identified,
    is_refused,
    moment,
    paired,
    refusal,
    same,
    topic_name,
    within,
)
from aiosemel._answers.registry import Checks
from semel.group.v1 import group_pb2 as group
from semel_common.wire import methods

CHECKS = Checks()
CHECKS.says_nothing(methods.TXN_OFFSET_COMMIT)

HEARTBEAT_INTERVAL_MAX_MS = 3_600_000
"""A longer pause between heartbeats is not believed: the member would be away from its group."""

_Place = tuple[str, int]


@CHECKS.of(methods.CONSUMER_GROUP_HEARTBEAT)
def _heartbeat(
    request: group.ConsumerGroupHeartbeatRequest, answer: group.ConsumerGroupHeartbeatResponse
) -> None:
    same("member_id", answer.member_id, request.member_id)
    if request.member_epoch < 0:
        return  # The member leaves: nothing of the answer counts.
    at_least("member_epoch", answer.member_epoch, max(1, request.member_epoch))
    within("heartbeat_interval_ms", answer.heartbeat_interval_ms, 1, HEARTBEAT_INTERVAL_MAX_MS)
    if answer.HasField("assignment"):
        _assigned("assignment", answer.assignment.topics)


def _assigned(field: str, topics: Iterable[group.AssignedTopic]) -> None:
    """Check an assignment; a topic without a name is deleted."""
    places: list[_Place] = []
    for topic in topics:
        identified(f"{field}.topic_id", topic.topic_id)
        if topic.topic:
            topic_name(f"{field}.topic", topic.topic)
        for partition in topic.partitions:
            at_least(f"{field}.partition", partition)
            places.append((topic.topic_id, partition))
    distinct(f"{field}.partition", places)


# -- offsets -------------------------------------------------------------------------------------


@CHECKS.of(methods.FETCH_OFFSETS)
def _fetch_offsets(request: group.FetchOffsetsRequest, answer: group.FetchOffsetsResponse) -> None:
    for offset in answer.offsets:
        at_least("offsets.partition", offset.partition)
        if not is_refused("offsets", offset):
            at_least("offsets.committed_offset", offset.committed_offset, -1)
    if request.all_partitions:
        return
    asked = [
        (topic.topic, topic.topic_id, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    counted("offsets", answer.offsets, asked)
    for (name, topic_id, partition), each in zip(asked, answer.offsets, strict=True):
        same("offsets.partition", each.partition, partition)
        if name:
            same("offsets.topic", each.topic, name)
        if topic_id:
            same("offsets.topic_id", each.topic_id, topic_id)


@CHECKS.of(methods.COMMIT_OFFSETS)
def _commit_offsets(
    request: group.CommitOffsetsRequest, answer: group.CommitOffsetsResponse
) -> None:
    asked = {
        place
        for topic in request.topics
        for partition in topic.partitions
        for place in _names(topic.topic, topic.topic_id, partition.partition)
    }
    _refused(asked, answer.errors)


@CHECKS.of(methods.DELETE_OFFSETS)
def _delete_offsets(
    request: group.DeleteOffsetsRequest, answer: group.DeleteOffsetsResponse
) -> None:
    asked = {
        place
        for topic in request.topics
        for partition in topic.partitions
        for place in _names(topic.topic, topic.topic_id, partition)
    }
    _refused(asked, answer.errors)


def _names(name: str, topic_id: str, partition: int) -> Iterable[_Place]:
    return [(text, partition) for text in (name, topic_id) if text]


def _refused(asked: set[_Place], errors: Iterable[group.OffsetPartitionError]) -> None:
    """Check that only what was asked is refused, and that there is a reason."""
    for error in errors:
        if not asked.intersection(_names(error.topic, error.topic_id, error.partition)):
            raise Unfit("errors.partition", error.partition, "was not asked for")
        refusal("errors.error", error.error)


# -- groups --------------------------------------------------------------------------------------


@CHECKS.of(methods.LIST_GROUPS)
def _list_groups(request: group.ListGroupsRequest, answer: group.ListGroupsResponse) -> None:
    del request  # Filters: the service knows best what they match.
    for listed in answer.groups:
        identified("groups.group_id", listed.group_id)
        at_least("groups.member_count", listed.member_count)


@CHECKS.of(methods.DESCRIBE_GROUPS)
def _describe_groups(
    request: group.DescribeGroupsRequest, answer: group.DescribeGroupsResponse
) -> None:
    for asked, each in paired("groups", request.group_ids, answer.groups):
        same("groups.group_id", each.group_id, asked)
        if not is_refused("groups", each):
            _description(each)


def _description(described: group.GroupDescription) -> None:
    at_least("groups.group_epoch", described.group_epoch)
    for member in described.members:
        identified("members.member_id", member.member_id)
        at_least("members.member_epoch", member.member_epoch, -2)
        _assigned("members.assignment", member.assignment)
        _assigned("members.target", member.target)
    distinct("members.member_id", (member.member_id for member in described.members))
    for pending in described.pending:
        at_least("pending.producer_id", pending.producer_id, 1)
        at_least("pending.producer_epoch", pending.producer_epoch)
        moment("pending.start_time_ms", pending.start_time_ms)
        for topic in pending.topics:
            for partition in topic.partitions:
                at_least("pending.partition", partition.partition)
                at_least("pending.committed_offset", partition.committed_offset)


@CHECKS.of(methods.DELETE_GROUPS)
def _delete_groups(request: group.DeleteGroupsRequest, answer: group.DeleteGroupsResponse) -> None:
    for asked, each in paired("groups", request.group_ids, answer.groups):
        same("groups.group_id", each.group_id, asked)
        is_refused("groups", each)
