"""The loop that forgets idle producers, whatever the participant is."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from participant_harness import two_coordinators

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.ids import GroupId, producer_id_of
from semel_common.wire.methods import INQUIRE_TRANSACTIONS
from semel_runtime.machine import Result
from semel_runtime.participant.producer_expiry import IdleProducer
from semel_runtime.participant.producer_expiry_loop import ExpiryOptions, ProducerExpiry
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import after, in_virtual_time

T = TypeVar("T")
GROUPS = [GroupId("a"), GroupId("b")]


@dataclass(slots=True)
class Machine:
    """Producers with a fence each; all of them are idle. Implements ``ForgetfulMachine``."""

    fences: dict[GroupId, dict[int, int]]
    looked: list[int] = field(default_factory=list)
    """How many producers were looked at in each go."""
    forgot: list[int] = field(default_factory=list)
    """How many were forgotten in each go."""

    def participants(self) -> Result[Sequence[GroupId], str]:
        return Result(list(self.fences))

    def producer_ids(self, participant: GroupId) -> Result[Sequence[int], str]:
        return Result(list(self.fences[participant]))

    def idle_producers(
        self, participant: GroupId, producer_ids: Sequence[int], *, now_ms: int
    ) -> Result[list[IdleProducer[GroupId]], str]:
        assert now_ms
        self.looked.append(len(producer_ids))
        known = self.fences[participant]
        return Result([IdleProducer(participant, each, known[each]) for each in producer_ids])

    def forget_producers(
        self, idle: Sequence[IdleProducer[GroupId]], *, now_ms: int
    ) -> Result[int, str]:
        assert now_ms
        for each in idle:
            assert self.fences[each.participant].pop(each.producer_id) == each.fence
        self.forgot.append(len(idle))
        return Result(len(idle), ["forgotten"])


class Runner:
    """Decides at once. Implements ``Runs``."""

    async def run(self, handler: Callable[[], Result[T, str]], *, privileged: bool = False) -> T:
        decided = handler()
        assert privileged == bool(decided.records)
        return decided.response


@dataclass(slots=True)
class Forgetting:
    """A loop, and the coordinators that it asks."""

    machine: Machine
    clock: ManualClock = field(default_factory=ManualClock)
    network: MemoryNetwork = field(default_factory=MemoryNetwork)
    needed: set[int] = field(default_factory=set)
    """Producers whose fences are needed."""
    asked: list[int] = field(default_factory=list)
    """How many producers were asked about in each request."""

    def loop(self) -> ProducerExpiry[GroupId, str]:
        handlers = Handlers()
        handlers.add(INQUIRE_TRANSACTIONS, self._answer)
        self.network.serve("coordinator-0:1", handlers)
        return ProducerExpiry(
            Runner(),
            self.machine,
            two_coordinators(),
            connector=self.network,
            clock=self.clock,
            options=ExpiryOptions(interval_ms=10, settling_ms=30, request_timeout_ms=50),
        )

    async def _answer(
        self, request: wire.InquireTransactionsRequest, _: Call
    ) -> wire.InquireTransactionsResponse:
        assert request.cluster_id == "cluster"
        self.asked.append(len(request.fences))
        assert all(fence.participant.group_id in "ab" and fence.fence for fence in request.fences)
        return wire.InquireTransactionsResponse(
            fences=[
                wire.FenceAnswer(needless=fence.producer_id not in self.needed)
                for fence in request.fences
            ]
        )


def producer(number: int, coordinator: int = 0) -> int:
    return producer_id_of(coordinator, number)


async def test_producers_without_transactions_are_forgotten_without_asking() -> None:
    forgetting = Forgetting(Machine({each: {producer(1): 0} for each in GROUPS}))
    await forgetting.loop().forget_idle()
    assert forgetting.machine.fences == {each: {} for each in GROUPS}
    assert forgetting.asked == []


async def test_a_fence_goes_only_if_its_coordinator_says_that_it_is_needless() -> None:
    machine = Machine({GROUPS[0]: {producer(1): 4, producer(2): 5}, GROUPS[1]: {producer(3): 6}})
    forgetting = Forgetting(machine, needed={producer(2)})
    await forgetting.loop().forget_idle()
    assert machine.fences == {GROUPS[0]: {producer(2): 5}, GROUPS[1]: {}}
    assert forgetting.asked == [3]


async def test_a_coordinator_that_is_away_keeps_no_other_producers() -> None:
    machine = Machine({GROUPS[0]: {producer(1, coordinator=1): 4, producer(1): 4, producer(2): 0}})
    await Forgetting(machine).loop().forget_idle()
    assert machine.fences == {GROUPS[0]: {producer(1, coordinator=1): 4}}


async def test_many_are_looked_at_asked_about_and_forgotten_in_pieces() -> None:
    machine = Machine({GROUPS[0]: {producer(n): 1 for n in range(1, 2_501)}, GROUPS[1]: {}})
    forgetting = Forgetting(machine)
    await forgetting.loop().forget_idle()
    assert machine.looked == [1_000, 1_000, 500]
    assert forgetting.asked == [1_000, 1_000, 500]
    assert machine.forgot == [1_000, 1_000, 500]
    assert machine.fences == {each: {} for each in GROUPS}


async def test_others_have_their_turn_while_one_that_knows_many_is_looked_at() -> None:
    machine = Machine({GROUPS[0]: {producer(n): 0 for n in range(1, 10_001)}})
    sweep = asyncio.create_task(Forgetting(machine).loop().forget_idle())
    while not machine.forgot:
        looked = len(machine.looked)
        await asyncio.sleep(0)
        assert len(machine.looked) <= looked + 1
    await sweep
    assert machine.fences == {GROUPS[0]: {}}


@in_virtual_time
async def test_nothing_is_forgotten_soon_after_a_start_or_a_jump_of_the_clock() -> None:
    machine = Machine({GROUPS[0]: {producer(1): 0}})
    forgetting = Forgetting(machine)
    running = asyncio.create_task(forgetting.loop().run())
    await after(5)
    forgetting.clock.advance(86_400_000)
    await after(10)
    for _ in range(2):
        forgetting.clock.advance(10)
        await after(10)
        assert machine.fences == {GROUPS[0]: {producer(1): 0}}
    forgetting.clock.advance(10)
    await after(10)
    assert machine.fences == {GROUPS[0]: {}}
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@in_virtual_time
async def test_nothing_is_forgotten_soon_after_a_clock_was_wrong_between_two_looks() -> None:
    machine = Machine({GROUPS[0]: {producer(1): 0}})
    forgetting = Forgetting(machine)
    running = asyncio.create_task(forgetting.loop().run())
    await after(5)
    for tick in range(5):
        forgetting.clock.advance(10)
        if tick == 2:
            forgetting.clock.jump(-86_400_000)
            forgetting.clock.jump(86_400_000)
        await after(10)
        assert machine.fences == {GROUPS[0]: {producer(1): 0}}
    forgetting.clock.advance(10)
    await after(10)
    assert machine.fences == {GROUPS[0]: {}}
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_nothing_is_forgotten_if_the_clock_jumps_while_coordinators_are_asked() -> None:
    machine = Machine({GROUPS[0]: {producer(1): 4}})
    forgetting = Forgetting(machine)
    loop = forgetting.loop()
    sweep = asyncio.create_task(loop.forget_idle())
    while not forgetting.asked:  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0)
    forgetting.clock.jump(86_400_000)
    await sweep
    assert machine.fences == {GROUPS[0]: {producer(1): 4}}
    await loop.forget_idle()
    assert machine.fences == {GROUPS[0]: {}}
