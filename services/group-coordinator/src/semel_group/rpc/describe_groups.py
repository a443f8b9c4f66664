"""DescribeGroups: groups with their members and their open transactions."""

import asyncio
from functools import partial

from semel.group.v1 import group_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire.status import to_value
from semel_group.loops.session_timeouts import MemberSessions, loop_ms
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.machine.topics import Topics
from semel_group.machine.values import (
    GroupDescription,
    MemberDescription,
    MemberKey,
    PendingDescription,
)
from semel_group.rpc.assigned_topics import assigned_topics
from semel_group.rpc.group_ids import group_ids
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.pages import Page, no_room


class GroupDescriber:
    """Answers DescribeGroups."""

    def __init__(
        self, runner: Runner[Record], machine: GroupMachine, sessions: MemberSessions
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._sessions = sessions

    async def describe_groups(
        self, request: wire.DescribeGroupsRequest, call: Call
    ) -> wire.DescribeGroupsResponse:
        """Describe one group after the other, as many as an answer has room for; errors are values.

        The error of a group says why it is not described.
        """
        del call
        page, topics = Page(0), self._machine.topics
        response = wire.DescribeGroupsResponse()
        for group_id in group_ids(request.group_ids):
            describe = partial(self._machine.groups.describe_groups, (group_id,))
            (described,) = await self._runner.run(describe)
            entry = group_description(group_id, described, topics)
            self._add_heartbeats(entry)
            if not page.takes(entry):
                entry = group_description(group_id, no_room(f"group {group_id!r}"), topics)
            response.groups.append(entry)
            await asyncio.sleep(0)
        return response

    def _add_heartbeats(self, entry: wire.GroupDescription) -> None:
        """Say of each member when it has spoken and polled last, as whom and from where."""
        now_ms = loop_ms()
        for member in entry.members:
            last = self._sessions.last_heartbeat(MemberKey(entry.group_id, member.member_id))
            if last is not None:
                member.principal, member.address = last.principal, last.address
                member.heartbeat_age_ms = max(0, round(now_ms - last.came_ms))
                if last.poll_age_ms is not None:
                    member.poll_age_ms = member.heartbeat_age_ms + last.poll_age_ms


def group_description(
    group_id: str, description: GroupDescription | SemelError, topics: Topics
) -> wire.GroupDescription:
    """Return one group, or the reason why it is not described."""
    if isinstance(description, SemelError):
        return wire.GroupDescription(group_id=group_id, error=to_value(description))
    return wire.GroupDescription(
        group_id=group_id,
        state=description.state.value,  # type: ignore[arg-type]  # equal numbers
        group_epoch=description.group_epoch,
        assignor=description.assignor,
        members=[_member(member, topics) for member in description.members],
        pending=[_pending(pending, topics) for pending in description.pending],
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
