"""The members of one group, as replay builds them, with indexes for fast look-ups.

Invariant: no partition is held by two members.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from semel_common.ids import TopicPartition
from semel_group.machine.membership.reconcile import is_settled
from semel_group.machine.records import ConsumerGroup, Member, MembershipRecord
from semel_group.machine.values import GroupState

NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


@dataclass(slots=True)
class GroupMembers:
    """One group with its members. Only replay changes it."""

    group: ConsumerGroup
    position: int
    """Journal offset of ``group``."""
    members: dict[str, Member] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    """Journal offsets of ``members``."""
    holders: dict[TopicPartition, str] = field(default_factory=dict)
    """The holder of each partition."""
    instances: dict[str, str] = field(default_factory=dict)
    """Which member has each instance id."""
    subscribers: Counter[str] = field(default_factory=Counter)
    """How many members want each topic, by name."""

    @property
    def state(self) -> GroupState:
        """Where the group stands."""
        if not self.members:
            return GroupState.EMPTY
        settled = all(self.is_settled(member) for member in self.members.values())
        return GroupState.STABLE if settled else GroupState.RECONCILING

    def target_of(self, member_id: str) -> frozenset[TopicPartition]:
        """Return what a member is to hold in the end."""
        return self.group.target.get(member_id, NO_PARTITIONS)

    def is_settled(self, member: Member) -> bool:
        """Whether a member holds just its target, or is away: no other member waits for it."""
        target = self.target_of(member.member_id)
        return member.is_away or is_settled(
            member, group_epoch=self.group.group_epoch, target=target
        )

    # -- replay ----------------------------------------------------------------------------------

    def put(self, offset: int, member: Member) -> None:
        """Set a member's state."""
        self._forget(member.member_id)
        for partition in member.held:
            holder = self.holders.setdefault(partition, member.member_id)
            assert holder == member.member_id, f"{partition} is held by {holder} already"
        if member.instance_id:
            self.instances[member.instance_id] = member.member_id
        self.subscribers.update(member.subscribed_topics)
        self.members[member.member_id] = member
        self.positions[member.member_id] = offset

    def remove(self, member_id: str) -> None:
        """Take a member away; what it held is free."""
        self._forget(member_id)
        del self.members[member_id]
        del self.positions[member_id]

    def snapshot(self) -> Iterable[tuple[int, MembershipRecord]]:
        """Return the group, then its members."""
        yield self.position, self.group
        for member_id, member in self.members.items():
            yield self.positions[member_id], member

    def _forget(self, member_id: str) -> None:
        known = self.members.get(member_id)
        if known is None:
            return
        for partition in known.held:
            del self.holders[partition]
        if known.instance_id:
            del self.instances[known.instance_id]
        for topic in known.subscribed_topics:
            self.subscribers[topic] -= 1
            if not self.subscribers[topic]:
                del self.subscribers[topic]
