"""How one member moves to its target, one heartbeat at a time (KIP-848).

Theory of operation. A partition is *held* from the answer that gives it to a member until that
member acknowledges its removal: until then the member may be using it, so no other member gets it.
A member first gives up all partitions that are not in its target, then it is given the free ones of
its target. No wait is circular: giving up depends on no other member.

A heartbeat acknowledges by leaving a partition out of the partitions that the member owns. It may
be late or repeated, so it counts only if it was sent after the member heard that the partition must
go. The member epoch tells: it moves on with every new target, and with no epoch a partition is both
given and taken away. So a member that speaks with the current epoch has heard of every partition
that must go, and can never again own a partition that it has once left out.

Kafka keeps the old member epoch until all is given up. Here the epoch moves at once, and each
partition remembers the epoch at which it was given; so a member's commit for a partition that it
held all along is accepted, whichever of its epochs it knew of.
"""

from collections.abc import Callable

from msgspec.structs import replace

from semel_common.ids import TopicPartition
from semel_group.machine.records import Member


def reconcile(
    member: Member,
    *,
    group_epoch: int,
    target: frozenset[TopicPartition],
    owned: frozenset[TopicPartition] | None,
    is_free: Callable[[TopicPartition], bool],
) -> Member:
    """Return the member one step closer to its target; itself, if there is no step to take.

    ``owned`` is what the member says with its current epoch; None: it said nothing of it.
    ``is_free`` tells whether no other member holds a partition.
    """
    held = {p: epoch for p, epoch in member.held.items() if not _given_up(member, p, owned)}
    revoking = frozenset(held.keys() - target)
    if not revoking:
        held |= {p: group_epoch for p in sorted(target - held.keys()) if is_free(p)}
    if member.member_epoch == group_epoch:
        if held.keys() == member.held.keys():
            return member
        return replace(member, held=held, revoking=revoking)
    return replace(
        member,
        member_epoch=group_epoch,
        previous_member_epoch=member.member_epoch,
        held=held,
        revoking=revoking,
    )


def is_settled(member: Member, *, group_epoch: int, target: frozenset[TopicPartition]) -> bool:
    """Whether a member holds exactly its target at the newest epoch."""
    return member.member_epoch == group_epoch and member.held.keys() == target


def _given_up(
    member: Member, partition: TopicPartition, owned: frozenset[TopicPartition] | None
) -> bool:
    return owned is not None and partition in member.revoking and partition not in owned
