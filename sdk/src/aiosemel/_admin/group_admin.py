"""The operators' changes of groups: deletions, and resets of offsets.

A reset reads first and commits then. A member may join in between. The commit names no member, and
the group coordinator refuses such a commit as soon as the group has members.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import assert_never

from aiosemel._admin.admin_part import AdminPart
from aiosemel._answers.refusals import raise_refusal
from aiosemel._cluster.log_offsets import AtTime, LogOffsets
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel._consumer.group.committed_offsets import GroupOffsets, to_commit
from aiosemel._shared.value_checks import check_group_id
from aiosemel.errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    InvalidRequestError,
    NonEmptyGroupError,
    UnknownMemberIdError,
)
from aiosemel.types.isolation import IsolationLevel
from aiosemel.types.offset_resets import OffsetChange, ResetTo, ShiftBy, ToOffset, ToTimestamp
from aiosemel.types.offsets import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    PartitionKey,
    TopicPartition,
)
from semel.coordinator.v1.outcomes_pb2 import Operator
from semel.group.v1 import group_pb2 as group
from semel_common.wire import methods, status


class GroupAdmin(AdminPart):
    """Changes the groups of a cluster. Made by ``Admin.groups``; needs no closing."""

    async def alter_offsets(
        self,
        group_id: str,
        offsets: Mapping[PartitionKey, int | OffsetAndMetadata],
        *,
        operator: str = "",
        reason: str = "",
    ) -> None:
        """Put a group's offsets where they are wanted; the group may not be there yet.

        With ``operator`` or ``reason``, the audit has an entry; without both, as of a program that
        keeps its own positions, it has none.
        Raises NonEmptyGroupError, UnknownTopicOrPartitionError, InvalidGroupIdError: all partitions
        that were not refused are committed then.
        """
        named = to_commit(offsets)
        check_group_id(group_id)
        by = Operator(name=operator, reason=reason) if operator or reason else None
        if named:
            await _alter(self._cluster, group_id, named, by, self._deadline())

    async def reset_offsets(
        self,
        group_id: str,
        to: ResetTo,
        *,
        partitions: Iterable[tuple[str, int]] | None = None,
        dry_run: bool = False,
        operator: str = "",
        reason: str = "",
    ) -> tuple[OffsetChange, ...]:
        """Reset a group's offsets, by partition: wherever it has any, or in the partitions named.

        An offset before the log's start becomes the start; an offset past the last stable offset
        becomes that. Returns the changes; with ``dry_run``, the changes that a reset would make.
        ``operator`` and ``reason`` go into the audit.
        Raises NonEmptyGroupError as long as the group has members, UnknownTopicOrPartitionError,
        InvalidGroupIdError, and InvalidRequestError for a shift of a partition without a committed
        offset.
        """
        reset = _OffsetReset(self._cluster, group_id, self._deadline())
        named = (
            None
            if partitions is None
            else [TopicPartition.named(partition) for partition in partitions]
        )
        changes = await reset.plan(named, to)
        if not dry_run:
            await reset.apply(changes, Operator(name=operator, reason=reason))
        return changes

    async def delete_offsets(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int]],
        *,
        dry_run: bool = False,
        operator: str = "",
        reason: str = "",
    ) -> None:
        """Forget a group's offsets of topics that no member reads; passes over missing ones.

        What open transactions hold there goes too. Raises GroupIdNotFoundError,
        GroupSubscribedToTopicError, UnknownTopicOrPartitionError: all partitions that were not
        refused have none any more. ``dry_run`` forgets none, and raises what would be raised now;
        it only looks at the group, so it does not say whether the caller may delete. ``operator``
        and ``reason`` go into the audit.
        """
        check_group_id(group_id)
        named = [TopicPartition.named(each) for each in partitions]
        if dry_run:
            await self._check_unread(group_id, named)
            return
        topics: defaultdict[str, list[int]] = defaultdict(list)
        for topic, partition in named:
            topics[topic].append(partition)
        request = group.DeleteOffsetsRequest(
            group_id=group_id,
            topics=[
                group.OffsetFetchTopic(topic=topic, partitions=numbers)
                for topic, numbers in topics.items()
            ],
            operator=Operator(name=operator, reason=reason),
        )
        response = await self._cluster.call(
            self._cluster.group_coordinator_of(group_id),
            methods.DELETE_OFFSETS,
            request,
            deadline=self._deadline(),
        )
        for refused in response.errors:
            raise status.from_value(refused.error)

    async def delete(
        self,
        group_id: str,
        *,
        missing_ok: bool = False,
        dry_run: bool = False,
        operator: str = "",
        reason: str = "",
    ) -> None:
        """Forget a group without members, with all its offsets.

        Raises NonEmptyGroupError, and GroupIdNotFoundError unless ``missing_ok``. ``dry_run``
        forgets nothing, and raises what would be raised now; it only looks at the group, so it does
        not say whether the caller may delete. ``operator`` and ``reason`` go into the audit.
        """
        check_group_id(group_id)
        try:
            if dry_run:
                _check_empty(await _describe(self._cluster, group_id, self._deadline()))
            else:
                await self._delete(group_id, Operator(name=operator, reason=reason))
        except GroupIdNotFoundError:
            if not missing_ok:
                raise

    async def _delete(self, group_id: str, operator: Operator) -> None:
        await self._cluster.call(
            self._cluster.group_coordinator_of(group_id),
            methods.DELETE_GROUPS,
            group.DeleteGroupsRequest(group_ids=[group_id], operator=operator),
            deadline=self._deadline(),
            check=lambda answer: raise_refusal(answer.groups),
        )

    async def _check_unread(self, group_id: str, partitions: Sequence[TopicPartition]) -> None:
        """Raise what a deletion of offsets would raise."""
        deadline = self._deadline()
        described = await _describe(self._cluster, group_id, deadline)
        await _offsets(self._cluster, group_id).settled(
            [(partition, "") for partition in partitions], deadline
        )
        read = {topic for member in described.members for topic in member.subscribed_topics}
        for topic, _ in partitions:
            if topic in read:
                raise GroupSubscribedToTopicError(
                    f"a member of group {group_id!r} reads topic {topic!r}"
                )


class _OffsetReset:
    """The reset of some offsets of one group."""

    def __init__(self, cluster: Cluster, group_id: str, deadline: Deadline) -> None:
        """Do nothing yet. Raises InvalidGroupIdError."""
        check_group_id(group_id)
        self._cluster = cluster
        self._group_id = group_id
        self._deadline = deadline

    async def plan(
        self, partitions: Iterable[TopicPartition] | None, to: ResetTo
    ) -> tuple[OffsetChange, ...]:
        """Return what would change; ``partitions`` None: wherever the group has an offset.

        Raises NonEmptyGroupError, UnknownTopicOrPartitionError, and InvalidRequestError for a shift
        of a partition without a committed offset.
        """
        await self._check_no_members()
        committed = await self._committed(partitions)
        asked = sorted(committed)
        # As readers of committed records see them: what an open transaction has written, and may
        # commit, is not passed over.
        logs = LogOffsets(self._cluster, IsolationLevel.READ_COMMITTED)
        starts = await logs.ends(asked, OffsetSpec.EARLIEST, self._deadline)
        ends = await logs.ends(asked, OffsetSpec.LATEST, self._deadline)
        at: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        if isinstance(to, ToTimestamp):
            times = dict.fromkeys(asked, AtTime(to.timestamp_ms))
            at = await logs.find(times, self._deadline)
        changes = []
        for question in asked:
            wanted = _wanted(to, question, committed[question], found=at.get(question))
            after = (
                ends[question]
                if wanted is None
                else max(starts[question], min(wanted, ends[question]))
            )
            changes.append(
                OffsetChange(partition=question, before=committed[question], after=after)
            )
        return tuple(changes)

    async def apply(self, changes: Iterable[OffsetChange], operator: Operator) -> None:
        """Commit what was planned. Raises NonEmptyGroupError."""
        offsets = {change.partition: OffsetAndMetadata(change.after) for change in changes}
        if offsets:
            await _alter(self._cluster, self._group_id, offsets, operator, self._deadline)

    async def _check_no_members(self) -> None:
        with suppress(GroupIdNotFoundError):  # The group may be made by its offsets.
            _check_empty(await _describe(self._cluster, self._group_id, self._deadline))

    async def _committed(
        self, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, int | None]:
        named = None if partitions is None else [(partition, "") for partition in partitions]
        offsets = _offsets(self._cluster, self._group_id)
        found = await offsets.settled(named, self._deadline)
        return {each: None if at is None else at.offset for each, at in found.items()}


async def _describe(cluster: Cluster, group_id: str, deadline: Deadline) -> group.GroupDescription:
    """Ask for a group with its members. Raises GroupIdNotFoundError."""
    response = await cluster.call(
        cluster.group_coordinator_of(group_id),
        methods.DESCRIBE_GROUPS,
        group.DescribeGroupsRequest(group_ids=[group_id]),
        deadline=deadline,
        check=lambda answer: raise_refusal(answer.groups),
    )
    (described,) = response.groups
    return described


def _check_empty(described: group.GroupDescription) -> None:
    members = len(described.members)
    if members:
        raise NonEmptyGroupError(
            f"group {described.group_id!r} has {members} members: stop them first"
        )


async def _alter(
    cluster: Cluster,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    operator: Operator | None,
    deadline: Deadline,
) -> None:
    """Commit offsets for a group without members. Raises NonEmptyGroupError."""
    try:
        await _offsets(cluster, group_id).commit(offsets, {}, deadline, operator=operator)
    except UnknownMemberIdError as error:
        raise NonEmptyGroupError(f"group {group_id!r} has members: stop them first") from error


def _wanted(
    to: ResetTo,
    partition: TopicPartition,
    committed: int | None,
    *,
    found: OffsetAndTimestamp | None,
) -> int | None:
    """Return where to go in a partition; None: to its end."""
    match to:
        case OffsetSpec.EARLIEST:
            return 0
        case OffsetSpec.LATEST:
            return None
        case ToOffset(offset):
            return offset
        case ToTimestamp():
            return None if found is None else found.offset
        case ShiftBy(offsets):
            if committed is None:
                raise InvalidRequestError(f"{partition} has no committed offset to shift from")
            return committed + offsets
        case OffsetSpec():
            raise InvalidRequestError(f"offsets cannot be reset to {to}")
        case _:
            assert_never(to)


def _offsets(cluster: Cluster, group_id: str) -> GroupOffsets:
    nobody = ConsumerGroupMetadata(group_id=group_id)
    return GroupOffsets(cluster, lambda: nobody, require_stable=False)
