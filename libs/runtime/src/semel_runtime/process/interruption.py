"""The end of a process that is told to stop before it has loaded its service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from semel_common.stop_signals import heeded_signals


class StoppedWhileLoadingError(Exception):
    """A signal stops the process, which has begun nothing that must end in order."""


@asynccontextmanager
async def interrupted_by(stop: asyncio.Event) -> AsyncIterator[None]:
    """Cancel the block when the event is set; raises StoppedWhileLoadingError then."""
    limit = asyncio.timeout(None)
    try:
        async with limit:
            watch = asyncio.create_task(_set_off(limit, stop), name="wait for signal")
            try:
                yield
            finally:
                watch.cancel()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise StoppedWhileLoadingError from error


async def _set_off(limit: asyncio.Timeout, stop: asyncio.Event) -> None:
    await stop.wait()
    limit.reschedule(asyncio.get_running_loop().time())


def stop_on_signals() -> asyncio.Event:
    """Return an event that is set at the first signal that ends the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in heeded_signals():
        loop.add_signal_handler(number, stop.set)
    return stop
