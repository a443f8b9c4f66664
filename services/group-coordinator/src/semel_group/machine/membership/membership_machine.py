"""The members of each group, as replay builds them, and their removal (KIP-848).

There are no timers in here: the shell knows when each member spoke last, and removes members that
were silent or slow for too long. All other changes begin with a heartbeat: see ``heartbeats.py``.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from semel_group.machine.limits import GroupLimits
from semel_group.machine.membership.rebalance import new_group, rebalanced
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
from semel_group.machine.values import MemberKey
from semel_runtime.cluster.metadata_image import Topic
from semel_runtime.machine import Result

FindTopics = Callable[[Iterable[str]], dict[str, Topic]]
"""Finds topics by name; missing ones are left out."""


class MembershipMachine:
    """All groups that have members or had some."""

    def __init__(self, limits: GroupLimits, find_topics: FindTopics) -> None:
        """Start without groups."""
        self._limits = limits
        self.find_topics = find_topics
        self.groups: dict[str, GroupMembers] = {}
        self._epochs_given = MemberEpochsGiven(group_epoch=0)
        """A group that is made again goes on above the epochs of the one that is gone: nothing that
        its members still send is ever taken for a new member's."""
        self._epochs_given_at = 0

    # -- handlers --------------------------------------------------------------------------------

    def remove_member(self, key: MemberKey, *, now_ms: int) -> Result[bool, Record]:
        """Remove a member that left or is expired. Answers whether it was there."""
        group = self.groups.get(key.group_id)
        if group is None or key.member_id not in group.members:
            return Result(False)
        others = [member for member in group.members.values() if member.member_id != key.member_id]
        removed = MemberRemoved(group_id=key.group_id, member_id=key.member_id)
        return Result(True, (removed, self.rebalanced(group.group, others, now_ms)))

    def raise_epochs(self, floor: int, *, now_ms: int) -> Iterator[MembershipRecord]:
        """Yield what removes all members, and gives no epoch below a floor any more.

        For an older copy of a volume, which has forgotten epochs: every member joins again.
        """
        for group_id, group in self.groups.items():
            for member_id in group.members:
                yield MemberRemoved(group_id=group_id, member_id=member_id)
            yield replace(self.rebalanced(group.group, [], now_ms), group_epoch=floor)
        yield MemberEpochsGiven(group_epoch=floor)

    def new_group(self, group_id: str) -> ConsumerGroup:
        """Return a group that no member has joined yet."""
        return new_group(group_id, self._epochs_given.group_epoch)

    def rebalanced(
        self, group: ConsumerGroup, members: Collection[Member], now_ms: int, speaker: str = ""
    ) -> ConsumerGroup:
        """Return the group at its next epoch, with the target for these members."""
        wanted = {name for member in members for name in member.subscribed_topics}
        retention_ms = self._limits.offsets_retention_ms
        topics = self.find_topics(wanted)
        return rebalanced(
            group, members, topics, now_ms=now_ms, retention_ms=retention_ms, speaker=speaker
        )

    # -- questions -------------------------------------------------------------------------------

    def find(self, group_id: str, member_id: str) -> Member | None:
        """Return a member, if it is there."""
        group = self.groups.get(group_id)
        return None if group is None else group.members.get(member_id)

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
