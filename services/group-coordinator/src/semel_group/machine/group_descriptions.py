"""Groups as operators see them."""

from semel_group.machine.membership.assignor import DEFAULT_ASSIGNOR
from semel_group.machine.membership.state import GroupMembers
from semel_group.machine.offsets.state import GroupOffsets, PendingTransaction
from semel_group.machine.records import Member
from semel_group.machine.values import (
    GroupDescription,
    GroupListing,
    GroupState,
    MemberDescription,
    PendingDescription,
    Transaction,
)


def listed(group_id: str, group: GroupMembers | None) -> GroupListing:
    """Return a group as an entry of a list."""
    return GroupListing(
        group_id=group_id,
        state=GroupState.EMPTY if group is None else group.state,
        member_count=0 if group is None else len(group.members),
    )


def described(group_id: str, group: GroupMembers | None, offsets: GroupOffsets) -> GroupDescription:
    """Return all about a group."""
    members = [] if group is None else sorted(group.members)
    return GroupDescription(
        group_id=group_id,
        state=GroupState.EMPTY if group is None else group.state,
        group_epoch=0 if group is None else group.group.group_epoch,
        assignor=DEFAULT_ASSIGNOR if group is None else group.group.assignor,
        members=tuple(_member(group, group.members[member]) for member in members if group),
        pending=tuple(_pending(*entry) for entry in sorted(offsets.pending.items(), key=_key)),
    )


def _key(entry: tuple[Transaction, PendingTransaction]) -> Transaction:
    return entry[0]


def _member(group: GroupMembers, member: Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        member_epoch=member.member_epoch,
        subscribed_topics=tuple(sorted(member.subscribed_topics)),
        assignment=tuple(sorted(member.assigned)),
        target=tuple(sorted(group.target_of(member.member_id))),
    )


def _pending(transaction: Transaction, pending: PendingTransaction) -> PendingDescription:
    offsets = ((each.partition, each.committed_offset) for _, each in pending.offsets())
    return PendingDescription(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        start_time_ms=pending.start_time_ms,
        offsets=tuple(sorted(offsets)),
    )
