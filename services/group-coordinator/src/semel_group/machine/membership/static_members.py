"""Static members: a group knows them by an instance id, over restarts (KIP-345, KIP-848).

Theory of operation. An instance id belongs to one member at a time. A static member that leaves for
a while (epoch -2) is *away*: it holds nothing any more, but its target stays, so no other member is
given those partitions. The next member that joins with its instance id takes its place, under a
member id of its own, and nothing moves; if none does in time, its session ends and it is removed
like any other member.

A member that was killed has not left. A member that joins with its instance id, and says that it
takes over, has its place at once: the member before it is removed, and fenced. A member that does
not say so is told UNRELEASED_INSTANCE_ID while another member has the instance id. A member that
was replaced is told FENCED_INSTANCE_ID.

Kafka lets a member that is away hold its partitions. If one of them has to go to another member, no
member reads it until the session ends.
"""

from msgspec.structs import replace

from semel_common.errors import (
    FencedInstanceIdError,
    InvalidRequestError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from semel_group.machine.membership.state import GroupMembers
from semel_group.machine.records import Member
from semel_group.machine.values import JOIN_EPOCH, STATIC_LEAVE_EPOCH, Heartbeat


def predecessor(group: GroupMembers | None, heartbeat: Heartbeat) -> Member | None:
    """Return the member whose place a heartbeat takes, if it takes one.

    Raises FencedInstanceIdError, UnreleasedInstanceIdError, UnknownMemberIdError, and
    InvalidRequestError for a member that is there under another instance id, or none.
    """
    if not heartbeat.instance_id:
        return None
    namesake = _namesake(group, heartbeat)
    if namesake is not None and namesake.member_id == heartbeat.member_id:
        return None
    joins = heartbeat.member_epoch == JOIN_EPOCH
    if namesake is not None and not joins:
        raise _fenced(heartbeat, namesake)
    if namesake is None and not joins:
        raise UnknownMemberIdError(
            f"group {heartbeat.group_id!r} has no member with instance id {heartbeat.instance_id!r}"
        )
    if namesake is not None and not namesake.is_away and not heartbeat.takes_over:
        raise UnreleasedInstanceIdError(
            f"instance id {heartbeat.instance_id!r} belongs to member {namesake.member_id!r}: "
            "it must leave first, or be silent until its session ends"
        )
    if group is not None and heartbeat.member_id in group.members:
        known = group.members[heartbeat.member_id]
        raise InvalidRequestError(
            f"member {known.member_id!r} joins with instance id {heartbeat.instance_id!r}, "
            f"but is there with {known.instance_id!r}",
            field="instance_id",
        )
    return namesake


def check_leaving(group: GroupMembers | None, heartbeat: Heartbeat) -> None:
    """Refuse one member's leaving for another. Raises FencedInstanceIdError."""
    namesake = _namesake(group, heartbeat)
    if namesake is not None and namesake.member_id != heartbeat.member_id:
        raise _fenced(heartbeat, namesake)


def away(member: Member) -> Member:
    """Return a member that has left for a while."""
    return replace(
        member,
        member_epoch=STATIC_LEAVE_EPOCH,
        previous_member_epoch=STATIC_LEAVE_EPOCH,
        held={},
        revoking=frozenset(),
    )


def back(member: Member, member_id: str) -> Member:
    """Return a member that was away, or was killed, as it joins; it holds nothing yet."""
    return replace(
        member,
        member_id=member_id,
        member_epoch=JOIN_EPOCH,
        previous_member_epoch=JOIN_EPOCH,
        held={},
        revoking=frozenset(),
    )


def _namesake(group: GroupMembers | None, heartbeat: Heartbeat) -> Member | None:
    """Return the member that has a heartbeat's instance id."""
    if group is None or heartbeat.instance_id not in group.instances:
        return None
    return group.members[group.instances[heartbeat.instance_id]]


def _fenced(heartbeat: Heartbeat, namesake: Member) -> FencedInstanceIdError:
    return FencedInstanceIdError(
        f"instance id {heartbeat.instance_id!r} belongs to member {namesake.member_id!r} by now, "
        f"not to {heartbeat.member_id!r}: another process has joined with this instance id; "
        "give each process an instance id of its own"
    )
