"""Closing things: each once, and all of them, whatever happens meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType

from aiosemel._consumer.running_callbacks import in_callback
from aiosemel._shared.context import Closable
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class Closing:
    """The one closing of one thing: concurrent calls wait for the first."""

    def __init__(self, afterwards: Callable[[], None] = lambda: None) -> None:
        """Close nothing yet. ``afterwards`` is called when it is over, whatever came of it."""
        self._afterwards = afterwards
        self._done: asyncio.Future[None] | None = None
        self._by: asyncio.Task[object] | None = None

    @property
    def under_way(self) -> bool:
        """Whether it has begun, and is not over."""
        return self._done is not None and not self._done.done()

    async def once(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close, or wait for the running close, which also ends when it raises or is cancelled.

        A callback that closes too waits for nothing: the closing may wait for the callback.
        """
        if self._done is None:
            self._done = asyncio.get_running_loop().create_future()
            self._by = asyncio.current_task()
            try:
                await close()
            finally:
                self._done.set_result(None)
                self._afterwards()
        elif self._by is not asyncio.current_task() and not in_callback():
            await asyncio.wait([self._done])


async def close_all(made: Iterable[Closable]) -> None:
    """Close everything, the last one first; one that fails leaves no other open.

    If the call is cancelled, it closes the remaining parts without a wait.
    """
    async with AsyncExitStack() as stack:
        for part in made:
            stack.push_async_exit(partial(_close, part))


async def _close(
    made: Closable,
    _kind: type[BaseException] | None,
    error: BaseException | None,
    _traceback: TracebackType | None,
) -> None:
    if not isinstance(error, asyncio.CancelledError):
        await made.close()
        return
    async with asyncio.TaskGroup() as group:
        closing = group.create_task(_close_quietly(made), name="close")
        await asyncio.sleep(0)  # A task that is cancelled before it begins closes nothing.
        closing.cancel()


async def _close_quietly(made: Closable) -> None:
    """Close; what goes wrong must not hide that the closing was cancelled."""
    try:
        await made.close()
    except Exception as error:  # noqa: BLE001 - whatever a callback of the user raises
        _log.warning("closing failed: %r", error)
