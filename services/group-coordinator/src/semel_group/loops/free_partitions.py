"""The times of free partitions, members' next heartbeats, and the members that were passed over.

A free partition is overdue when the member that it is meant for is late, by more than a grace, and
at the latest after a heartbeat interval. Members that speak before are asked to speak then. So a
live member has it within an interval, whichever members have gone without a word.

As with sessions, that is known in this process only: after a restart, and after a group has moved
here, every partition that is free has been so from then on.
"""

from collections.abc import Container, Mapping, Sequence
from math import inf

from semel_common.ids import TopicPartition
from semel_group.loops.session_timeouts import loop_ms
from semel_group.machine import GroupMachine
from semel_group.machine.membership.free_partitions import free_partitions
from semel_group.machine.records import ConsumerGroup, Member, MemberRemoved, Record
from semel_group.machine.values import HeartbeatAnswer, MemberKey


class FreePartitions:
    """The free partitions of all groups that have any. Without I/O: it is told the time."""

    def __init__(self, machine: GroupMachine, heartbeat_interval_ms: int, grace_ms: int) -> None:
        """Know of none. A member is late when it speaks ``grace_ms`` after it was to speak."""
        self._machine = machine
        self._interval_ms = heartbeat_interval_ms
        self._grace_ms = grace_ms
        self._since_ms: dict[str, dict[TopicPartition, float]] = {}
        self._late_ms: dict[str, dict[str, float]] = {}
        """By group and member: from when on it is late."""
        self._passed_over: dict[str, frozenset[str]] = {}

    def on_durable(self, records: Sequence[Record]) -> None:
        """Look at the groups whose members or targets have changed."""
        changed = {
            record.group_id
            for record in records
            if isinstance(record, ConsumerGroup | Member | MemberRemoved)
        }
        for group_id in changed:
            self.look(group_id, loop_ms())

    def look(self, group_id: str, now_ms: float) -> None:
        """Note what is free now."""
        group = self._machine.membership.groups.get(group_id)
        known = self._since_ms.pop(group_id, {})
        if group is not None and (free := free_partitions(group)):
            self._since_ms[group_id] = {each: known.get(each, now_ms) for each in free}
        late_ms = self._late_ms.pop(group_id, {})
        if group is not None and (late_ms := _only(late_ms, group.members)):
            self._late_ms[group_id] = late_ms

    def overdue_in_ms(self, group_id: str, now_ms: float) -> float:
        """Return when the next partition is overdue, in milliseconds; none is: a whole interval."""
        overdue_ms = self._overdue_ms(group_id).values()
        return min(overdue_ms, default=now_ms + self._interval_ms) - now_ms

    def overdue(self, group_id: str, now_ms: float) -> frozenset[TopicPartition]:
        """Return the partitions that are overdue now."""
        if group_id not in self._since_ms:
            return frozenset()
        self.look(group_id, now_ms)
        overdue_ms = self._overdue_ms(group_id)
        return frozenset(each for each, at_ms in overdue_ms.items() if now_ms >= at_ms)

    def _overdue_ms(self, group_id: str) -> dict[TopicPartition, float]:
        """Return when each free partition is overdue."""
        group = self._machine.membership.groups.get(group_id)
        since_ms = self._since_ms.get(group_id)
        if group is None or since_ms is None:
            return {}
        late_ms = self._late_ms.get(group_id, {})
        return {
            each: min(since_ms[each] + self._interval_ms, late_ms.get(member_id, inf))
            for each, member_id in free_partitions(group).items()
            if each in since_ms
        }

    def is_back(self, key: MemberKey) -> bool:
        """Whether a member that speaks was passed over."""
        return key.member_id in self._passed_over.get(key.group_id, frozenset())

    def to_speak(self, key: MemberKey, in_ms: int, now_ms: float) -> None:
        """Note when a member was asked to speak again."""
        group = self._machine.membership.groups.get(key.group_id)
        if group is not None and key.member_id in group.members:
            of_group = self._late_ms.setdefault(key.group_id, {})
            of_group[key.member_id] = now_ms + in_ms + self._grace_ms

    def answered(self, key: MemberKey, answer: HeartbeatAnswer) -> None:
        """Note which members were passed over, and that the one that was answered no longer is."""
        passed_over = self._passed_over.pop(key.group_id, frozenset()) - {key.member_id}
        group = self._machine.membership.groups.get(key.group_id)
        if group is not None:
            passed_over = (passed_over | answer.taken_from) & group.members.keys()
        if group is not None and passed_over:
            self._passed_over[key.group_id] = passed_over


def _only(times_ms: Mapping[str, float], members: Container[str]) -> dict[str, float]:
    return {each: at_ms for each, at_ms in times_ms.items() if each in members}
