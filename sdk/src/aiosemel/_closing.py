"""Closing things: each once, and all of them, whatever happens meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType

from aiosemel._context import Closable
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class Closing:
    """The one closing of one thing: whoever comes second waits until it is done."""

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
        """Close, or wait for who does. What raises, or is cancelled, is over as well.

        A callback that is told of the closing, and closes too, waits for nothing.
        """
        if self._done is None:
            self._done = asyncio.get_running_loop().create_future()
            self._by = asyncio.current_task()
            try:
                await close()
            finally:
                self._done.set_result(None)
                self._afterwards()
        elif self._by is not asyncio.current_task():
            await asyncio.wait([self._done])


async def close_all(made: Iterable[Closable]) -> None:
    """Close everything, the last one first; one that fails leaves no other open.

    If that is cancelled, those that are left are closed, and nothing of theirs is waited for.
    """
    async with AsyncExitStack() as stack:
        for each in made:
            stack.push_async_exit(partial(_close, each))


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
        await asyncio.sleep(0)  # Who is cancelled before it begins closes nothing.
        closing.cancel()


async def _close_quietly(made: Closable) -> None:
    """Close; what goes wrong must not hide that the closing was cancelled."""
    try:
        await made.close()
    except Exception as error:  # noqa: BLE001 - whatever a callback of the user raises
        _log.warning("closing failed: %r", error)
