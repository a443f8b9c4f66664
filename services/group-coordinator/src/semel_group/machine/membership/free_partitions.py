"""Partitions that no member holds, though a member is to hold them.

A member takes what is free with its next heartbeat. A member that lives for a shorter time than a
heartbeat interval, or that was killed, never sends that heartbeat. So a partition is *overdue* once
the member that it is meant for is late, and at the latest when it was free for a whole interval:
the next member that speaks is given it. If the member that it was meant for speaks after all, the
group is evened out.

A partition that waits for a static member that is away is not free.
"""

from collections.abc import Collection
from typing import NamedTuple

from msgspec.structs import replace

from semel_common.ids import TopicPartition
from semel_group.machine.membership.state import GroupMembers
from semel_group.machine.records import ConsumerGroup


class Taken(NamedTuple):
    """The group with overdue partitions in the target of the member that speaks."""

    group: ConsumerGroup
    taken_from: frozenset[str]
    """The members that they were meant for."""


def free_partitions(group: GroupMembers) -> dict[TopicPartition, str]:
    """Return the partitions that no member holds, and that wait for no member that is away.

    Each with the member that it is meant for.
    """
    return {
        partition: member_id
        for member_id, partitions in group.group.target.items()
        if not group.members[member_id].is_away
        for partition in partitions
        if partition not in group.holders
    }


def take_overdue(
    group: ConsumerGroup, member_id: str, overdue: Collection[TopicPartition]
) -> Taken:
    """Return the group at its next epoch, with partitions of others in a member's target."""
    wanted = frozenset(overdue) - group.target[member_id]
    taken_from = frozenset(
        each for each, partitions in group.target.items() if not wanted.isdisjoint(partitions)
    )
    if not wanted:
        return Taken(group, taken_from)
    target = {each: partitions - wanted for each, partitions in group.target.items()}
    target[member_id] |= wanted
    return Taken(replace(group, group_epoch=group.group_epoch + 1, target=target), taken_from)
