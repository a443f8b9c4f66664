"""How groups stand, in numbers: what operators watch."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from semel_group.machine.membership.membership_machine import MembershipMachine
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.values import GroupState


class GroupStanding(Struct, frozen=True, kw_only=True):
    """One group."""

    group_id: str
    state: GroupState
    members: int
    open_transactions: int
    oldest_ms: int | None
    """When the oldest of these began."""


def standing(
    group_ids: Iterable[str], membership: MembershipMachine, offsets: OffsetsMachine
) -> Iterator[GroupStanding]:
    """Describe groups, which may have members, offsets, or both."""
    for group_id in group_ids:
        group = membership.groups.get(group_id)
        pending = offsets.group(group_id).pending.values()
        yield GroupStanding(
            group_id=group_id,
            state=GroupState.EMPTY if group is None else group.state,
            members=0 if group is None else len(group.members),
            open_transactions=len(pending),
            oldest_ms=min((each.start_time_ms for each in pending), default=None),
        )
