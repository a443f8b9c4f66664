"""Which members may commit offsets: for which partitions, and at which of their epochs."""

from semel_common.errors import StaleMemberEpochError, UnknownMemberIdError
from semel_common.ids import TopicPartition
from semel_group.machine.membership.state import GroupMembers
from semel_group.machine.records import Member
from semel_group.machine.values import Committer


def committing_member(group: GroupMembers | None, committer: Committer) -> Member | None:
    """Return the member that commits offsets; None for a committer outside of a group.

    Raises UnknownMemberIdError (also for a committer outside of a group that has members), and
    StaleMemberEpochError for an epoch that the member was not given yet.
    """
    if not committer.member_id:
        if group is not None and group.members:
            raise UnknownMemberIdError(
                f"group {committer.group_id!r} has members: only they may commit its offsets"
            )
        return None
    if group is None or committer.member_id not in group.members:
        raise unknown_member(committer.group_id, committer.member_id)
    member = group.members[committer.member_id]
    if committer.member_epoch > member.member_epoch:
        raise _stale(committer, f"is at epoch {member.member_epoch}")
    return member


def check_current(committer: Committer, member: Member | None) -> None:
    """Raise StaleMemberEpochError unless the committer has the epoch of its member."""
    if member is not None and committer.member_epoch != member.member_epoch:
        raise StaleMemberEpochError(
            f"member {committer.member_id!r} has epoch {committer.member_epoch}: "
            f"the group gave it {member.member_epoch}",
            member_epoch=member.member_epoch,
        )


def stale_partition(
    member: Member, committer: Committer, partition: TopicPartition
) -> StaleMemberEpochError | None:
    """Return why a member may not commit for a partition; None if it may.

    It may if it holds the partition, and held it already at the epoch that it gives: a member that
    lost it in between does not know where others have moved the group to.
    """
    since = member.held.get(partition)
    place = f"partition {partition.partition} of topic id {partition.topic_id}"
    if since is None:
        return _stale(committer, f"does not hold {place}")
    if committer.member_epoch < since:
        return _stale(committer, f"holds {place} since epoch {since} only")
    return None


def unknown_member(group_id: str, member_id: str) -> UnknownMemberIdError:
    """Return the error for a member that a group does not have."""
    return UnknownMemberIdError(f"group {group_id!r} has no member {member_id!r}")


def _stale(committer: Committer, why: str) -> StaleMemberEpochError:
    return StaleMemberEpochError(
        f"member {committer.member_id!r} commits at epoch {committer.member_epoch}, but {why}",
        member_epoch=committer.member_epoch,
    )
