"""Things that tasks take in turn: each is in one hand at a time, and the first to ask is the first.

A thing is in one of three places: free, on its way to a task that has waited for it, or taken. Only
the task that has taken it knows of it, and gives it back.
"""

import asyncio
from collections import deque
from typing import Generic, TypeVar

from aiosemel.errors import SemelError

T = TypeVar("T")


class Turns(Generic[T]):
    """Hands things out in the order in which tasks have asked for them."""

    def __init__(self) -> None:
        self._free: deque[T] = deque()
        self._waiters: deque[asyncio.Future[T]] = deque()
        self._end: SemelError | None = None

    def give(self, thing: T) -> None:
        """Let the next task have a thing."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(thing)
                return
        self._free.append(thing)

    async def take(self, timeout_ms: float) -> T:
        """Wait for a thing. Raises TimeoutError, and after ``end`` its error.

        The thing that was free for the longest time comes first, so that each is used now and then.
        A task that is cancelled, or too late, leaves what it would have got to the next one.
        """
        if self._end is not None:
            raise self._end.again()
        if self._free:
            return self._free.popleft()
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await waiter
        except BaseException:
            self._leave(waiter)
            raise

    def end(self, error: SemelError) -> None:
        """Hand out nothing more: tasks that wait, or come later, get the first error given here."""
        if self._end is not None:
            return
        self._end = error
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error.again())
        self._waiters.clear()

    def _leave(self, waiter: asyncio.Future[T]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        elif waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            self.give(waiter.result())
