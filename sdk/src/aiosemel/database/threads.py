"""Drivers that block, and the threads in which they do."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def run_to_end(function: Callable[[], T], *, executor: ThreadPoolExecutor | None = None) -> T:
    """Run a function in a thread of an executor, by default the loop's; returns its result.

    Raises CancelledError only when the function has ended: until then the thread uses the
    connection, and the caller would close it.
    """
    work = asyncio.get_running_loop().run_in_executor(executor, function)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):  # the caller hears of the first one
                await asyncio.wait([work])
        raise
