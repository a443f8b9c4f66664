"""The bytes that reads share."""

import asyncio

import pytest

from semel_broker.rpc.read_budget import Budget
from semel_runtime.testing.virtual_time import after, in_virtual_time


def soon(duration_s: float = 1.0) -> float:
    return asyncio.get_running_loop().time() + duration_s


@in_virtual_time
async def test_a_read_gets_what_it_wants_or_what_is_left_if_that_is_worth_it() -> None:
    budget = Budget(160)
    assert await budget.reserve(100, until=soon()) == 100
    assert await budget.reserve(100, until=soon()) == 60
    assert await budget.reserve(1, until=soon()) == 0
    assert not budget.has_room()
    budget.release(9)
    assert await budget.reserve(100, until=soon()) == 0, "less than one part in sixteen"
    assert await budget.reserve(9, until=soon()) == 9
    budget.release(160)
    assert (budget.held_bytes, budget.has_room()) == (0, True)


@in_virtual_time
async def test_waiting_readers_are_served_in_their_order() -> None:
    budget = Budget(160)
    await budget.reserve(160, until=soon())
    served: list[int] = []

    async def read(size: int) -> None:
        if await budget.reserve(size, until=soon()):
            served.append(size)

    async with asyncio.TaskGroup() as group:
        for size in (10, 9, 8):
            group.create_task(read(size))
            await after(1)
        budget.release(10)
        await after(1)
        assert served == [10]
        budget.release(17)
        await after(1)
        assert served == [10, 9, 8]


@in_virtual_time
async def test_who_gives_up_lets_the_next_one_through() -> None:
    budget = Budget(160)
    await budget.reserve(155, until=soon())
    async with asyncio.TaskGroup() as group:
        large = group.create_task(budget.reserve(100, until=soon(0.5)))
        small = group.create_task(budget.reserve(5, until=soon(5)))
        await after(400)
        assert not small.done()
    assert (large.result(), small.result()) == (0, 5)


@pytest.mark.parametrize("granted", [False, True])
@in_virtual_time
async def test_a_call_that_is_cancelled_while_it_waits_holds_nothing(granted: bool) -> None:
    budget = Budget(160)
    await budget.reserve(160, until=soon())
    waiting = asyncio.create_task(budget.reserve(10, until=soon()))
    await after(1)
    if granted:
        budget.release(10)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert budget.held_bytes == (150 if granted else 160)
