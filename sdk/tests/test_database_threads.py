"""Functions in threads, which a cancelled caller does not leave behind."""

import asyncio
from threading import Event

import pytest

from aiosemel.database.threads import run_to_end


async def test_the_result_and_the_error_come_back() -> None:
    assert await run_to_end(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await run_to_end(lambda: 1 // 0)


async def test_a_cancelled_caller_waits_for_the_end_of_the_function() -> None:
    begun, may_end = Event(), Event()

    def function() -> None:
        begun.set()
        may_end.wait()

    caller = asyncio.create_task(run_to_end(function))
    await asyncio.to_thread(begun.wait)
    for _ in range(3):
        caller.cancel()
        await asyncio.wait([caller], timeout=0.01)
        assert not caller.done()
    may_end.set()
    await asyncio.wait([caller])
    assert caller.cancelled()
