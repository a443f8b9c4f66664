"""The members of each group, and the partitions of each member (KIP-848).

Theory of operation. Members speak in heartbeats, and every change happens there: a heartbeat may
change the group (a new target, at a new group epoch), and then moves the member that sent it one
step towards its target (see ``reconcile.py``). There are no timers in here: the shell knows when
each member spoke last, and removes members that were silent or slow for too long.

An answer can be lost. So a heartbeat with the previous epoch, or a join by a member that is there
already, is a repeat: it is answered with what holds now, and moves nothing. Any other epoch that is
not the member's own is fenced.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from semel_common.errors import (
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    StaleMemberEpochError,
    ThrottlingQuotaExceededError,
    UnknownMemberIdError,
    UnsupportedAssignorError,
)
from semel_common.ids import TopicPartition
from semel_group.machine.limits import GroupLimits
from semel_group.machine.membership import static_members
from semel_group.machine.membership.assignor import ASSIGNORS
from semel_group.machine.membership.free_partitions import Taken, free_partitions, take_overdue
from semel_group.machine.membership.rebalance import (
    new_group,
    partition_counts,
    rebalanced,
    renamed,
)
from semel_group.machine.membership.reconcile import is_settled, reconcile
from semel_group.machine.membership.state import GroupMembers
from semel_group.machine.records import (
    ConsumerGroup,
    GroupDeleted,
    Member,
    MemberEpochsGiven,
    MemberRemoved,
    MembershipRecord,
    Record,
)
from semel_group.machine.values import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Committer,
    Heartbeat,
    HeartbeatAnswer,
    MemberKey,
)
from semel_runtime.cluster.metadata_image import Topic
from semel_runtime.machine import Result

FindTopics = Callable[[Iterable[str]], dict[str, Topic]]
"""Finds topics by name; missing ones are left out."""


class MembershipMachine:
    """All groups that have members or had some."""

    def __init__(self, limits: GroupLimits, find_topics: FindTopics) -> None:
        """Start without groups."""
        self._limits = limits
        self._find_topics = find_topics
        self.groups: dict[str, GroupMembers] = {}
        self._epochs_given = MemberEpochsGiven(group_epoch=0)
        """A group that is made again goes on above the epochs of the one that is gone: nothing that
        its members still send is ever taken for a new member's."""
        self._epochs_given_at = 0

    # -- handlers --------------------------------------------------------------------------------

    def consumer_group_heartbeat(self, heartbeat: Heartbeat) -> Result[HeartbeatAnswer, Record]:
        """Join, keep up, acknowledge, or leave.

        Raises UnknownMemberIdError, FencedMemberEpochError, FencedInstanceIdError,
        UnreleasedInstanceIdError, UnsupportedAssignorError, GroupMaxSizeReachedError and
        ThrottlingQuotaExceededError. Leaving twice is no error.
        """
        if heartbeat.member_epoch < JOIN_EPOCH:
            return self._leave(heartbeat)
        if heartbeat.server_assignor and heartbeat.server_assignor not in ASSIGNORS:
            raise UnsupportedAssignorError(
                f"no assignor is called {heartbeat.server_assignor!r}: "
                f"there is {', '.join(sorted(ASSIGNORS))}"
            )
        predecessor = static_members.predecessor(self.groups.get(heartbeat.group_id), heartbeat)
        if predecessor is not None:
            return self._take_over(predecessor, heartbeat)
        known = self._find(heartbeat.group_id, heartbeat.member_id)
        if known is not None:
            _check_epoch(known, heartbeat)
            if known.is_away:
                return self._take_over(known, heartbeat)
            repeated = heartbeat.member_epoch != known.member_epoch
            return self._next(known, heartbeat, repeated=repeated)
        if heartbeat.member_epoch != JOIN_EPOCH:
            raise _unknown_member(heartbeat.group_id, heartbeat.member_id)
        self._check_room(heartbeat.group_id)
        return self._next(_joining(heartbeat), heartbeat, repeated=False)

    def _leave(self, heartbeat: Heartbeat) -> Result[HeartbeatAnswer, Record]:
        """Leave for good, or as a static member for a while."""
        static_members.check_leaving(self.groups.get(heartbeat.group_id), heartbeat)
        left = _left(heartbeat.member_epoch)
        if heartbeat.member_epoch == LEAVE_EPOCH:
            key = MemberKey(heartbeat.group_id, heartbeat.member_id)
            return Result(left, self.remove_member(key, now_ms=heartbeat.arrived_ms).records)
        known = self._find(heartbeat.group_id, heartbeat.member_id)
        if known is None or known.is_away or not known.instance_id:
            return Result(left)
        return Result(left, (static_members.away(known),))

    def remove_member(self, key: MemberKey, *, now_ms: int) -> Result[bool, Record]:
        """Remove a member that left or is expired. Answers whether it was there."""
        group = self.groups.get(key.group_id)
        if group is None or key.member_id not in group.members:
            return Result(False)
        others = [member for member in group.members.values() if member.member_id != key.member_id]
        removed = MemberRemoved(group_id=key.group_id, member_id=key.member_id)
        return Result(True, (removed, self._rebalanced(group.group, others, now_ms)))

    def raise_epochs(self, floor: int, *, now_ms: int) -> Iterator[MembershipRecord]:
        """Yield what removes all members, and gives no epoch below a floor any more.

        For an older copy of a volume, which has forgotten epochs: every member joins again.
        """
        for group_id, group in self.groups.items():
            for member_id in group.members:
                yield MemberRemoved(group_id=group_id, member_id=member_id)
            yield replace(self._rebalanced(group.group, [], now_ms), group_epoch=floor)
        yield MemberEpochsGiven(group_epoch=floor)

    # -- questions -------------------------------------------------------------------------------

    def committing_member(self, committer: Committer) -> Member | None:
        """Return the member that commits offsets; None for a committer outside of a group.

        Raises UnknownMemberIdError (also for a committer outside of a group that has members), and
        StaleMemberEpochError for an epoch that the member was not given yet.
        """
        group = self.groups.get(committer.group_id)
        if not committer.member_id:
            if group is not None and group.members:
                raise UnknownMemberIdError(
                    f"group {committer.group_id!r} has members: only they may commit its offsets"
                )
            return None
        member = self._find(committer.group_id, committer.member_id)
        if member is None:
            raise _unknown_member(committer.group_id, committer.member_id)
        if committer.member_epoch > member.member_epoch:
            raise _stale(committer, f"is at epoch {member.member_epoch}")
        return member

    def has_members(self, group_id: str) -> bool:
        """Whether anybody is in a group, or away from it for a while."""
        group = self.groups.get(group_id)
        return group is not None and bool(group.members)

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether a member of a group reads a topic, which is named."""
        group = self.groups.get(group_id)
        return group is not None and topic in group.subscribers

    def unsubscribed_ms(self, group_id: str, topic_id: str) -> int:
        """Return the time since when no member reads a topic; 0: unknown."""
        group = self.groups.get(group_id)
        return 0 if group is None else group.group.unsubscribed.get(topic_id, 0)

    def members(self) -> Iterable[MemberKey]:
        """Return all members of all groups."""
        return (
            MemberKey(name, each) for name, group in self.groups.items() for each in group.members
        )

    def epochs_given(self) -> tuple[MemberEpochsGiven, ...]:
        """Return up to which epoch groups that are gone have had them, if any have."""
        return (self._epochs_given,) if self._epochs_given.group_epoch else ()

    def known_of(self, group_id: str) -> Iterator[MembershipRecord]:
        """Yield a group, then its members; nothing if no member has ever joined."""
        group = self.groups.get(group_id)
        if group is not None:
            yield from (record for _, record in group.snapshot())

    # -- replay ----------------------------------------------------------------------------------

    def forget(self, group_id: str) -> None:
        """Know nothing of a group: it is another instance's."""
        self.groups.pop(group_id, None)

    def replay(self, offset: int, record: MembershipRecord) -> None:
        """Apply one record."""
        match record:
            case ConsumerGroup():
                group = self.groups.get(record.group_id)
                if group is None:
                    self.groups[record.group_id] = GroupMembers(record, offset)
                else:
                    group.group, group.position = record, offset
            case Member():
                self.groups[record.group_id].put(offset, record)
            case MemberRemoved():
                self.groups[record.group_id].remove(record.member_id)
            case GroupDeleted():
                deleted = self.groups.pop(record.group_id, None)
                if deleted is not None:
                    self._give_epochs(offset, deleted.group.group_epoch)
            case MemberEpochsGiven():
                self._give_epochs(offset, record.group_epoch)
            case _:
                assert_never(record)

    def snapshot(self) -> Iterable[tuple[int, MembershipRecord]]:
        """Return every group, each followed by its members."""
        if self._epochs_given.group_epoch:
            yield self._epochs_given_at, self._epochs_given
        for group in self.groups.values():
            yield from group.snapshot()

    def _give_epochs(self, offset: int, group_epoch: int) -> None:
        if group_epoch > self._epochs_given.group_epoch:
            self._epochs_given = MemberEpochsGiven(group_epoch=group_epoch)
            self._epochs_given_at = offset

    # -- one heartbeat ---------------------------------------------------------------------------

    def _take_over(
        self, predecessor: Member, heartbeat: Heartbeat
    ) -> Result[HeartbeatAnswer, Record]:
        """Let a static member be back: under the same instance id, with the same target."""
        successor = static_members.back(predecessor, heartbeat.member_id)
        joined = self._next(successor, heartbeat, repeated=False, predecessor=predecessor)
        if predecessor.member_id == successor.member_id:
            return joined
        gone = MemberRemoved(group_id=predecessor.group_id, member_id=predecessor.member_id)
        return Result(joined.response, (gone, *joined.records))

    def _next(
        self,
        known: Member,
        heartbeat: Heartbeat,
        *,
        repeated: bool,
        predecessor: Member | None = None,
    ) -> Result[HeartbeatAnswer, Record]:
        """Let a heartbeat change the group, then move the member one step."""
        said = _with_what_was_said(known, heartbeat)
        group = self._next_group(said, predecessor, heartbeat)
        taken_from: frozenset[str] = frozenset()
        if heartbeat.overdue and not repeated:
            group, taken_from = self._take_overdue(group, said, heartbeat.overdue)
        target = group.target[said.member_id]
        member = said
        if not repeated:
            member = reconcile(
                said,
                group_epoch=group.group_epoch,
                target=target,
                owned=heartbeat.owned,
                is_free=lambda partition: self._is_free(said, partition, predecessor),
            )
        state = self.groups.get(group.group_id)
        records: list[Record] = []
        if state is None or group is not state.group:
            records.append(group)
        if member is not known:
            records.append(member)
        settled = is_settled(member, group_epoch=group.group_epoch, target=target)
        answer = _answer(member, heartbeat, settled=settled)
        return Result(replace(answer, taken_from=taken_from) if taken_from else answer, records)

    def _take_overdue(
        self, group: ConsumerGroup, said: Member, overdue: frozenset[TopicPartition]
    ) -> Taken:
        """Give partitions that were free for too long to a member that can take them at once."""
        state = self.groups.get(group.group_id)
        if state is None or not said.held.keys() <= group.target[said.member_id]:
            return Taken(group, frozenset())
        wanted = partition_counts(self._find_topics(said.subscribed_topics))
        takes = [
            each for each in overdue & free_partitions(state).keys() if each.topic_id in wanted
        ]
        return take_overdue(group, said.member_id, takes)

    def _next_group(
        self, said: Member, predecessor: Member | None, heartbeat: Heartbeat
    ) -> ConsumerGroup:
        """Return the group as it is once a member has spoken."""
        state, now_ms = self.groups.get(said.group_id), heartbeat.arrived_ms
        if state is None:
            group = new_group(said.group_id, self._epochs_given.group_epoch)
            return self._rebalanced(group, [said], now_ms)
        group, members = state.group, dict(state.members)
        known = predecessor or members.get(said.member_id)
        if known is not None and known.member_id != said.member_id:
            group = renamed(group, known.member_id, said.member_id)
            del members[known.member_id]
        if known is not None and _asks_for_the_same(known, said) and not heartbeat.is_back:
            topics = self._find_topics(state.subscribers)
            if partition_counts(topics) == group.topics:
                return group
        members[said.member_id] = said
        return self._rebalanced(group, members.values(), now_ms, speaker=said.member_id)

    def _rebalanced(
        self, group: ConsumerGroup, members: Collection[Member], now_ms: int, speaker: str = ""
    ) -> ConsumerGroup:
        wanted = {name for member in members for name in member.subscribed_topics}
        retention_ms = self._limits.offsets_retention_ms
        topics = self._find_topics(wanted)
        return rebalanced(
            group, members, topics, now_ms=now_ms, retention_ms=retention_ms, speaker=speaker
        )

    def _is_free(
        self, member: Member, partition: TopicPartition, predecessor: Member | None
    ) -> bool:
        state = self.groups.get(member.group_id)
        holder = None if state is None else state.holders.get(partition)
        may_hold = {None, member.member_id, predecessor and predecessor.member_id}
        return holder in may_hold

    def _find(self, group_id: str, member_id: str) -> Member | None:
        group = self.groups.get(group_id)
        return None if group is None else group.members.get(member_id)

    def _check_room(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if group is None and len(self.groups) >= self._limits.groups_max:
            raise ThrottlingQuotaExceededError(
                f"there are {len(self.groups)} groups: at most {self._limits.groups_max}"
            )
        if group is not None and len(group.members) >= self._limits.group_size_max:
            raise GroupMaxSizeReachedError(
                f"group {group_id!r} has {len(group.members)} members: "
                f"at most {self._limits.group_size_max}"
            )


def stale_partition(
    member: Member, committer: Committer, partition: TopicPartition
) -> StaleMemberEpochError | None:
    """Return why a member may not commit for a partition; None if it may.

    It may if it holds the partition, and held it already at the epoch that it gives: who lost it in
    between does not know where others have moved the group to.
    """
    since = member.held.get(partition)
    place = f"partition {partition.partition} of topic id {partition.topic_id}"
    if since is None:
        return _stale(committer, f"does not hold {place}")
    if committer.member_epoch < since:
        return _stale(committer, f"holds {place} since epoch {since} only")
    return None


def _left(epoch: int) -> HeartbeatAnswer:
    return HeartbeatAnswer(member_epoch=epoch, assignment=None, settled=True, revoke_within_ms=None)


def _joining(heartbeat: Heartbeat) -> Member:
    """Return a member that holds nothing yet."""
    return Member(
        group_id=heartbeat.group_id,
        member_id=heartbeat.member_id,
        instance_id=heartbeat.instance_id,
        member_epoch=JOIN_EPOCH,
        previous_member_epoch=JOIN_EPOCH,
        rebalance_timeout_ms=heartbeat.rebalance_timeout_ms or 0,
        subscribed_topics=frozenset(),
        server_assignor="",
        held={},
        revoking=frozenset(),
    )


def _with_what_was_said(member: Member, heartbeat: Heartbeat) -> Member:
    """Return a member with what its heartbeat changes; itself, if that is nothing."""
    said = replace(
        member,
        rebalance_timeout_ms=heartbeat.rebalance_timeout_ms or member.rebalance_timeout_ms,
        subscribed_topics=(
            member.subscribed_topics
            if heartbeat.subscribed_topics is None
            else heartbeat.subscribed_topics
        ),
        server_assignor=heartbeat.server_assignor or member.server_assignor,
    )
    return member if said == member else said


def _asks_for_the_same(known: Member, said: Member) -> bool:
    """Whether nothing was said that the target depends on."""
    return (
        known.subscribed_topics == said.subscribed_topics
        and known.server_assignor == said.server_assignor
    )


def _check_epoch(member: Member, heartbeat: Heartbeat) -> None:
    """Refuse epochs that the member was not given last, and partitions that it was not given."""
    if heartbeat.member_epoch == JOIN_EPOCH:
        return
    if heartbeat.member_epoch not in {member.member_epoch, member.previous_member_epoch}:
        raise FencedMemberEpochError(
            f"member {member.member_id!r} has epoch {heartbeat.member_epoch}: "
            f"the group gave it {member.member_epoch}",
            member_epoch=member.member_epoch,
        )
    foreign = (heartbeat.owned or frozenset()) - member.held.keys()
    if foreign:
        raise FencedMemberEpochError(
            f"member {member.member_id!r} owns {len(foreign)} partitions "
            "that the group did not give it",
            member_epoch=member.member_epoch,
        )


def _answer(member: Member, heartbeat: Heartbeat, *, settled: bool) -> HeartbeatAnswer:
    """Answer the assignment, unless the member has just said that it knows and holds it."""
    known = (
        heartbeat.member_epoch == member.member_epoch
        and heartbeat.owned == member.assigned
        and not member.revoking
    )
    return HeartbeatAnswer(
        member_epoch=member.member_epoch,
        assignment=None if known else tuple(sorted(member.assigned)),
        settled=settled,
        revoke_within_ms=member.rebalance_timeout_ms if member.revoking else None,
    )


def _unknown_member(group_id: str, member_id: str) -> UnknownMemberIdError:
    return UnknownMemberIdError(f"group {group_id!r} has no member {member_id!r}")


def _stale(committer: Committer, why: str) -> StaleMemberEpochError:
    return StaleMemberEpochError(
        f"member {committer.member_id!r} commits at epoch {committer.member_epoch}, but {why}",
        member_epoch=committer.member_epoch,
    )
