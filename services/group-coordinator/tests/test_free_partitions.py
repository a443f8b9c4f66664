"""A partition that no member holds is soon given to a live member, however short members live."""

from dataclasses import dataclass, field
from random import Random

import pytest
from group_harness import GROUP, GroupHarness, orders
from group_service import GroupService, cluster_in_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from semel_common.ids import TopicPartition
from semel_group.loops.free_partitions import FreePartitions
from semel_group.machine.values import LEAVE_EPOCH, MemberKey
from semel_runtime.testing.virtual_time import after, in_virtual_time

INTERVAL_MS = 5_000
RECONCILING_MS = 500
"""How soon a member that waits for partitions is to speak, and how late it may be."""


def test_a_joining_member_is_given_what_a_silent_one_was_meant_to_have() -> None:
    group = GroupHarness({"orders": 1})
    group.join("a")
    group.join("b")
    group.leave("a")  # now b is to have the partition, but b does not speak
    assert group.join("c").assignment == tuple(orders(0))
    assert group.heartbeat("b", owned=()).assignment == ()


def test_a_partition_that_waits_for_a_member_that_is_away_is_not_free() -> None:
    group = GroupHarness({"orders": 2})
    group.join("s", instance_id="s")
    group.leave_for_a_while("s", "s")
    group.join("a")
    waiting = orders(0, 1) - group.held("a")
    assert len(waiting) == 1
    answer = group.heartbeat("a", owned=group.held("a"), overdue=waiting)
    assert not answer.taken_from
    assert group.join("s2", instance_id="s").assignment == tuple(waiting)


def test_an_overdue_partition_goes_to_the_member_that_speaks() -> None:
    group = GroupHarness({"orders": 3})
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2))
    kept = group.held("a") - group.machine.membership.groups[GROUP].target_of("b")
    group.heartbeat("a", owned=kept)
    (free,) = orders(0, 1, 2) - kept
    answer = group.heartbeat("a", owned=kept, overdue={free})
    assert answer.taken_from == {"b"}
    assert answer.assignment == tuple(sorted(orders(0, 1, 2)))
    group.heartbeat("a", owned=orders(0, 1, 2))
    assert group.heartbeat("b", owned=(), is_back=True).settled is False
    assert group.heartbeat("a", owned=orders(0, 1, 2)).revoke_within_ms is not None


def test_a_member_that_is_to_give_something_up_takes_nothing_that_is_overdue() -> None:
    group = GroupHarness({"orders": 4})
    group.join("a")
    group.join("b")
    group.join("c")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    assert not group.heartbeat("a", owned=orders(0, 1, 2, 3), overdue=orders(0, 1)).taken_from


def test_nothing_is_taken_of_topics_that_a_member_does_not_read() -> None:
    group = GroupHarness({"orders": 2, "income": 1})
    group.join("a", "income")
    group.join("b", "orders")
    group.join("c", "orders")
    group.leave("b")
    assert not group.heartbeat("a", owned=group.held("a"), overdue=orders(0, 1)).taken_from


@dataclass
class Churn:
    """A group of members that live for a short time, in virtual time."""

    partitions: int
    random: Random
    now_ms: int = 0
    alive_until_ms: dict[str, int] = field(default_factory=dict)
    born: int = 0

    def __post_init__(self) -> None:
        self.group = GroupHarness({"orders": self.partitions})
        self.free = FreePartitions(self.group.machine, INTERVAL_MS, RECONCILING_MS)
        self.free_since_ms: dict[TopicPartition, int] = {}
        self.longest_ms = 0

    def pass_time(self, until_ms: int) -> None:
        """Let members come, and go before they have spoken twice."""
        while self.now_ms < until_ms:
            self.now_ms += 100
            for member_id in [m for m, at in self.alive_until_ms.items() if at <= self.now_ms]:
                del self.alive_until_ms[member_id]
                self.group.leave(member_id)
                self._look()
            if self.random.random() < 0.3 or not self.alive_until_ms:
                self._join()

    def _join(self) -> None:
        self.born += 1
        member_id = f"{self.random.getrandbits(32):08x}"
        self.alive_until_ms[member_id] = self.now_ms + self.random.randrange(200, 1_000, 100)
        overdue = self.free.overdue(GROUP, self.now_ms)
        answer = self.group.heartbeat(
            member_id, 0, topics={"orders"}, owned=(), timeout_ms=60_000, overdue=overdue
        )
        key = MemberKey(GROUP, member_id)
        self.free.answered(key, answer)
        in_ms = INTERVAL_MS if answer.settled else RECONCILING_MS
        self.free.to_speak(key, in_ms, self.now_ms)
        self._look()

    def _look(self) -> None:
        self.free.look(GROUP, self.now_ms)
        state = self.group.machine.membership.groups[GROUP]
        held = state.holders if state.members else orders(*range(self.partitions))
        unheld = [order for order in orders(*range(self.partitions)) if order not in held]
        since = {each: self.free_since_ms.get(each, self.now_ms) for each in unheld}
        self.free_since_ms = since
        self.longest_ms = max([self.now_ms - at for at in since.values()] + [self.longest_ms])


@given(partitions=st.integers(1, 8), seed=st.integers(0, 1 << 32))
@settings(max_examples=30, deadline=None)
def test_no_partition_is_without_a_member_for_longer_than_an_interval(
    partitions: int, seed: int
) -> None:
    """No member lives for as long as an interval, so none is ever heard a second time."""
    churn = Churn(partitions, Random(seed))
    churn.pass_time(60_000)
    assert churn.born > 100
    assert churn.longest_ms <= INTERVAL_MS


@pytest.mark.parametrize("seed", range(5))
def test_a_single_partition_of_short_lived_members_has_a_member_at_every_joining(
    seed: int,
) -> None:
    churn = Churn(1, Random(seed))
    churn.pass_time(60_000)
    assert churn.longest_ms <= 1_000


async def _two_members(service: GroupService) -> None:
    """Let a hold 0 and 1; 2 and 3 are free, and wait for b, which does not speak again."""
    await service.heartbeat("a", 0)
    await service.heartbeat("b", 0)
    await service.heartbeat("a", 1, 0, 1, 2, 3)
    await service.heartbeat("a", 2, 0, 1)


@in_virtual_time
async def test_a_live_member_is_asked_to_speak_when_it_can_take_what_is_free() -> None:
    async with cluster_in_memory() as service:
        await _two_members(service)
        await after(300)
        answer = await service.heartbeat("a", 2, 0, 1)
        assert answer.heartbeat_interval_ms == 700  # b was to speak after 500 ms
        assert not answer.HasField("assignment")
        await after(700)
        answer = await service.heartbeat("a", 2, 0, 1)
        assert [list(topic.partitions) for topic in answer.assignment.topics] == [[0, 1, 2, 3]]
        assert answer.heartbeat_interval_ms == INTERVAL_MS


@in_virtual_time
async def test_a_member_that_was_passed_over_and_speaks_gets_its_share() -> None:
    async with cluster_in_memory() as service:
        await _two_members(service)
        await after(5_000)
        epoch = (await service.heartbeat("a", 2, 0, 1)).member_epoch
        await service.heartbeat("a", epoch, 0, 1, 2, 3)
        back = await service.heartbeat("b", 2)
        assert back.member_epoch == epoch + 1
        answer = await service.heartbeat("a", epoch, 0, 1, 2, 3)
        ((left,),) = [[list(topic.partitions)] for topic in answer.assignment.topics]
        assert len(left) == 2
        await service.heartbeat("a", epoch + 1, *left)
        answer = await service.heartbeat("b", epoch + 1)
        assert sum(len(topic.partitions) for topic in answer.assignment.topics) == 2


class Live:
    """A member that speaks when it is asked to, and does as it is told."""

    def __init__(self, service: GroupService, member_id: str) -> None:
        self._service = service
        self._member_id = member_id
        self._epoch = 0
        self.held: tuple[int, ...] = ()

    async def speak(self) -> int:
        """Say what it holds; return when it is to speak again."""
        answer = await self._service.heartbeat(self._member_id, self._epoch, *self.held)
        self._epoch = answer.member_epoch
        if answer.HasField("assignment"):
            self.held = tuple(p for topic in answer.assignment.topics for p in topic.partitions)
        return answer.heartbeat_interval_ms

    async def leave(self) -> None:
        """Leave for good."""
        await self._service.heartbeat(self._member_id, LEAVE_EPOCH)


@in_virtual_time
async def test_a_silent_member_keeps_a_partition_from_others_for_an_interval_at_most() -> None:
    """It was killed a moment before the partition became free, and is late an interval after."""
    async with cluster_in_memory() as service:
        leaver, silent, live = (Live(service, each) for each in "abc")
        for _ in range(6):
            for each in (leaver, silent, live):
                await each.speak()
        assert sorted((*leaver.held, *silent.held, *live.held)) == [0, 1, 2, 3]
        await leaver.leave()
        left_ms = 0
        while sorted((*silent.held, *live.held)) != [0, 1, 2, 3] and left_ms < 2 * INTERVAL_MS:
            in_ms = await live.speak()
            if sorted((*silent.held, *live.held)) != [0, 1, 2, 3]:
                await after(in_ms)
                left_ms += in_ms
        assert left_ms <= INTERVAL_MS
