"""A loop of the SDK that runs until something is true."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from aiosemel import Relay, Transform

TIMEOUT_S = 60
POLL_S = 0.02


@asynccontextmanager
async def running(loop: Transform | Relay) -> AsyncIterator["asyncio.Task[None]"]:
    """Run a loop for the length of a block; raises what it raises."""
    task = asyncio.create_task(loop.run())
    try:
        yield task
        loop.stop()
        await task
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def until(
    condition: Callable[[], Awaitable[bool]], task: "asyncio.Task[None] | None" = None
) -> None:
    """Wait until a condition is true, while a task runs."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await condition():
            if task is not None and task.done():
                await task
                raise AssertionError("the loop has ended")
            await asyncio.sleep(POLL_S)
