"""The heartbeats of members, and the answers of the group (KIP-848).

Theory of operation. Members speak in heartbeats, and every change happens there: a heartbeat may
change the group (a new target, at a new group epoch), and then moves the member that sent it one
step towards its target (see ``reconcile.py``).

An answer can be lost. So a heartbeat with the previous epoch, or a join by a member that is there
already, is a repeat: it is answered with what holds now, and moves nothing. Any other epoch that is
not the member's own is fenced.
"""

from msgspec.structs import replace

from semel_common.errors import (
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    ThrottlingQuotaExceededError,
    UnsupportedAssignorError,
)
from semel_common.ids import TopicPartition
from semel_group.machine.limits import GroupLimits
from semel_group.machine.membership import static_members
from semel_group.machine.membership.assignor import ASSIGNORS
from semel_group.machine.membership.committing_members import unknown_member
from semel_group.machine.membership.free_partitions import Taken, free_partitions, take_overdue
from semel_group.machine.membership.membership_machine import MembershipMachine
from semel_group.machine.membership.rebalance import partition_counts, renamed
from semel_group.machine.membership.reconcile import is_settled, reconcile
from semel_group.machine.records import ConsumerGroup, Member, MemberRemoved, Record
from semel_group.machine.values import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Heartbeat,
    HeartbeatAnswer,
    MemberKey,
)
from semel_runtime.machine import Result


class Heartbeats:
    """Decides on each heartbeat of a member."""

    def __init__(self, limits: GroupLimits, membership: MembershipMachine) -> None:
        """Decide about the groups of a machine."""
        self._limits = limits
        self._membership = membership

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
        group = self._membership.groups.get(heartbeat.group_id)
        predecessor = static_members.predecessor(group, heartbeat)
        if predecessor is not None:
            return self._take_over(predecessor, heartbeat)
        known = self._membership.find(heartbeat.group_id, heartbeat.member_id)
        if known is not None:
            _check_epoch(known, heartbeat)
            if known.is_away:
                return self._take_over(known, heartbeat)
            repeated = heartbeat.member_epoch != known.member_epoch
            return self._next(known, heartbeat, repeated=repeated)
        if heartbeat.member_epoch != JOIN_EPOCH:
            raise unknown_member(heartbeat.group_id, heartbeat.member_id)
        self._check_room(heartbeat.group_id)
        return self._next(_joining(heartbeat), heartbeat, repeated=False)

    def _leave(self, heartbeat: Heartbeat) -> Result[HeartbeatAnswer, Record]:
        """Leave for good, or as a static member for a while."""
        static_members.check_leaving(self._membership.groups.get(heartbeat.group_id), heartbeat)
        left = _left(heartbeat.member_epoch)
        if heartbeat.member_epoch == LEAVE_EPOCH:
            key = MemberKey(heartbeat.group_id, heartbeat.member_id)
            removed = self._membership.remove_member(key, now_ms=heartbeat.arrived_ms)
            return Result(left, removed.records)
        known = self._membership.find(heartbeat.group_id, heartbeat.member_id)
        if known is None or known.is_away or not known.instance_id:
            return Result(left)
        return Result(left, (static_members.away(known),))

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
        state = self._membership.groups.get(group.group_id)
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
        state = self._membership.groups.get(group.group_id)
        if state is None or not said.held.keys() <= group.target[said.member_id]:
            return Taken(group, frozenset())
        wanted = partition_counts(self._membership.find_topics(said.subscribed_topics))
        takes = [
            each for each in overdue & free_partitions(state).keys() if each.topic_id in wanted
        ]
        return take_overdue(group, said.member_id, takes)

    def _next_group(
        self, said: Member, predecessor: Member | None, heartbeat: Heartbeat
    ) -> ConsumerGroup:
        """Return the group as it is once a member has spoken."""
        state, now_ms = self._membership.groups.get(said.group_id), heartbeat.arrived_ms
        if state is None:
            group = self._membership.new_group(said.group_id)
            return self._membership.rebalanced(group, [said], now_ms)
        group, members = state.group, dict(state.members)
        known = predecessor or members.get(said.member_id)
        if known is not None and known.member_id != said.member_id:
            group = renamed(group, known.member_id, said.member_id)
            del members[known.member_id]
        if known is not None and _asks_for_the_same(known, said) and not heartbeat.is_back:
            topics = self._membership.find_topics(state.subscribers)
            if partition_counts(topics) == group.topics:
                return group
        members[said.member_id] = said
        return self._membership.rebalanced(group, members.values(), now_ms, speaker=said.member_id)

    def _is_free(
        self, member: Member, partition: TopicPartition, predecessor: Member | None
    ) -> bool:
        state = self._membership.groups.get(member.group_id)
        holder = None if state is None else state.holders.get(partition)
        may_hold = {None, member.member_id, predecessor and predecessor.member_id}
        return holder in may_hold

    def _check_room(self, group_id: str) -> None:
        groups = self._membership.groups
        group = groups.get(group_id)
        if group is None and len(groups) >= self._limits.groups_max:
            raise ThrottlingQuotaExceededError(
                f"there are {len(groups)} groups: at most {self._limits.groups_max}"
            )
        if group is not None and len(group.members) >= self._limits.group_size_max:
            raise GroupMaxSizeReachedError(
                f"group {group_id!r} has {len(group.members)} members: "
                f"at most {self._limits.group_size_max}"
            )


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
