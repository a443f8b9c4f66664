"""Things that tasks take in turn."""

import asyncio

import pytest

from aiosemel._producer.pool.fair_queue import Turns
from aiosemel.errors import ClosedError

LONG_MS = 60_000


def taking(turns: Turns[str]) -> "asyncio.Task[str]":
    return asyncio.create_task(turns.take(LONG_MS))


async def all_have_run() -> None:
    """Let every task come as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_task_that_asks_first_is_served_first() -> None:
    turns: Turns[str] = Turns()
    tasks = [taking(turns) for _ in range(3)]
    await all_have_run()
    for name in ("a", "b", "c"):
        turns.give(name)
    assert await asyncio.gather(*tasks) == ["a", "b", "c"]


async def test_a_task_that_comes_late_does_not_overtake_one_that_has_waited() -> None:
    turns: Turns[str] = Turns()
    waiting = taking(turns)
    await all_have_run()
    turns.give("thing")
    with pytest.raises(TimeoutError):  # It asks before the task that waited has run again.
        await turns.take(0)
    assert await waiting == "thing"


async def test_a_task_that_is_cancelled_as_its_turn_comes_leaves_it_to_the_next() -> None:
    turns: Turns[str] = Turns()
    cancelled, following = taking(turns), taking(turns)
    await all_have_run()
    turns.give("thing")
    cancelled.cancel()
    assert await following == "thing"
    assert cancelled.cancelled()


async def test_a_task_whose_time_is_up_takes_nothing() -> None:
    turns: Turns[str] = Turns()
    with pytest.raises(TimeoutError):
        await turns.take(100)
    turns.give("thing")
    assert await turns.take(0) == "thing"


async def test_the_thing_that_was_free_for_the_longest_time_comes_first() -> None:
    turns: Turns[str] = Turns()
    turns.give("a")
    turns.give("b")
    assert await turns.take(0) == "a"


async def test_the_end_reaches_tasks_that_wait_and_tasks_that_come() -> None:
    turns: Turns[str] = Turns()
    tasks = [taking(turns) for _ in range(2)]
    await all_have_run()
    turns.end(ClosedError("first"))
    turns.end(ClosedError("second"))
    for task in (*tasks, taking(turns)):
        with pytest.raises(ClosedError, match="first"):
            await task
