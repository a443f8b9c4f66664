"""Work in the background that leaves most of the time to others."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

PAUSE_STEPS = 4
"""How many steps' time is left to others after each step."""


async def paced(step: Awaitable[T], *, pause_steps: int = PAUSE_STEPS) -> T:
    """Take a step, and then pause for as long as some steps, so that few others ever meet one."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    result = await step
    await asyncio.sleep(pause_steps * (loop.time() - started))
    return result
