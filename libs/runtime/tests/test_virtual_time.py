"""Virtual time: timers in order, no waiting, and no way to be surprised."""

import asyncio
import time

import pytest

from semel_runtime.testing.virtual_time import (
    DeadlockError,
    LoopClock,
    VirtualTimeLoop,
    after,
    ended,
    in_virtual_time,
    run_in_virtual_time,
)

DAY_MS = 24 * 60 * 60 * 1000


@in_virtual_time
async def test_waiting_takes_no_time() -> None:
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    await after(400 * DAY_MS)
    assert loop.time() == pytest.approx(400 * DAY_MS / 1000)
    assert time.monotonic() - began < 5


@in_virtual_time
async def test_timers_run_in_the_order_of_their_times() -> None:
    seen: list[tuple[str, float]] = []
    loop = asyncio.get_running_loop()

    async def wait(name: str, duration_ms: int) -> None:
        await after(duration_ms)
        seen.append((name, loop.time()))

    async with asyncio.TaskGroup() as group:
        for name, duration_ms in (("c", 30), ("a", 10), ("b", 20)):
            group.create_task(wait(name, duration_ms))
    assert seen == [("a", 0.01), ("b", 0.02), ("c", 0.03)]


@in_virtual_time
async def test_timeouts_are_kept_in_virtual_time() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await asyncio.Event().wait()
    assert asyncio.get_running_loop().time() == pytest.approx(60)


@in_virtual_time
async def test_a_cancelled_wait_ends_at_once() -> None:
    task = asyncio.create_task(after(1_000))
    await after(1)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert asyncio.get_running_loop().time() == pytest.approx(0.001)


@in_virtual_time
async def test_a_stopped_process_finds_its_timers_late() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    timer = asyncio.create_task(after(10))
    await after(1)
    loop.jump(100)
    await timer
    assert loop.time() == pytest.approx(0.101)


def test_a_deadlock_is_told() -> None:
    async def wait_for_nobody() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="everybody waits"):
        run_in_virtual_time(wait_for_nobody())


@in_virtual_time
async def test_there_are_no_threads() -> None:
    with pytest.raises(RuntimeError, match="no threads"):
        await asyncio.to_thread(time.monotonic)


@in_virtual_time
async def test_the_clock_on_the_wall_goes_with_the_loop() -> None:
    clock = LoopClock(start_ms=5_000)
    await after(250)
    assert clock.now_ms() == 5_250
    clock.start_ms += 1_000
    assert clock.now_ms() == 6_250


@in_virtual_time
async def test_what_another_thread_would_ask_for_runs_too() -> None:
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon_threadsafe(done.set)
    await done.wait()


@in_virtual_time
async def test_ended_task_shows_the_errors_that_its_test_did_not_expect() -> None:
    async def fail() -> None:
        async with asyncio.TaskGroup():
            raise KeyError("broken volume")

    await ended(asyncio.create_task(after(DAY_MS)))
    for expected in ((), (ValueError,)):
        failed = asyncio.create_task(fail())
        await after(1)
        with pytest.RaisesGroup(KeyError):
            await ended(failed, expected=expected)
    failed = asyncio.create_task(fail())
    await after(1)
    await ended(failed, expected=(ValueError, KeyError))
