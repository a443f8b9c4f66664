"""Processes on one loop: stopped ones stand still, dead ones are gone, without a last word."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from semel_runtime.testing.virtual_time import DeadlockError, after
from simulation.world import Life, SimulatedLoop, bury, simulated_loop


@pytest.fixture
def loop() -> Iterator[SimulatedLoop]:
    made = SimulatedLoop()
    yield made
    bury(made)


class Made:
    """An object of a simulation."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop


def test_all_that_was_made_on_a_loop_is_freed_with_it() -> None:
    """Else a later test would free it, and fail of the complaints of killed processes."""
    with simulated_loop() as loop:
        made = Made(loop)
        loop.made = made  # type: ignore[attr-defined]  # a circle, as tasks make
        freed = weakref.ref(made)
        del made
    del loop
    gc.collect()
    assert freed() is None


async def count_to(seen: list[float], end: int, ended: list[str]) -> None:
    try:
        for _ in range(end):
            await after(10)
            seen.append(asyncio.get_running_loop().time())
    finally:
        ended.append("finally")


def test_a_stopped_process_goes_on_where_it_stood(loop: SimulatedLoop) -> None:
    seen: list[float] = []
    life = Life("one", 1)
    task = loop.start(life, count_to(seen, 3, []))
    loop.call_later(0.015, loop.stop_life, life)
    loop.call_later(1.0, loop.resume_life, life)
    loop.run_until_complete(_done(task))
    assert seen == pytest.approx([0.01, 1.0, 1.01])


def test_a_dead_process_does_nothing_any_more_not_even_finally(loop: SimulatedLoop) -> None:
    seen: list[float] = []
    ended: list[str] = []
    life = Life("one", 1)
    loop.start(life, count_to(seen, 3, ended))
    loop.call_later(0.015, loop.end_life, life)
    loop.run_until_complete(after(1_000))
    assert seen == pytest.approx([0.01])
    assert ended == []


def test_processes_do_not_stop_one_another(loop: SimulatedLoop) -> None:
    first: list[float] = []
    second: list[float] = []
    one, two = Life("one", 1), Life("two", 1)
    loop.start(one, count_to(first, 2, []))
    task = loop.start(two, count_to(second, 2, []))
    loop.stop_life(one)
    loop.run_until_complete(_done(task))
    assert first == []
    assert second == pytest.approx([0.01, 0.02])


def test_what_a_process_starts_belongs_to_it(loop: SimulatedLoop) -> None:
    seen: list[float] = []
    life = Life("one", 1)

    async def parent() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(count_to(seen, 5, []))

    loop.start(life, parent())
    loop.call_later(0.025, loop.end_life, life)
    loop.run_until_complete(after(1_000))
    assert seen == pytest.approx([0.01, 0.02])


def test_timers_of_one_moment_run_in_the_order_they_were_set(loop: SimulatedLoop) -> None:
    seen: list[int] = []
    for number in range(50):
        loop.call_later(0.01, seen.append, number)
    loop.run_until_complete(after(20))
    assert seen == list(range(50))


def test_a_world_in_which_nothing_will_happen_is_told(loop: SimulatedLoop) -> None:
    with pytest.raises(DeadlockError):
        loop.run_until_complete(asyncio.Event().wait())


async def _done(task: "asyncio.Task[None]") -> None:
    await asyncio.wait([task])
