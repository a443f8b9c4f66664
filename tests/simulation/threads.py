"""Threads of a simulated process: their work stops where it touches a disk, and goes on later.

The work of a thread is plain code that blocks. It runs in a greenlet: `pause` gives the turn back
to the event loop, which goes on with the work after a time, as a step of the same process. So the
work of a stopped process waits, the work of a killed process never goes on, and other processes
come between any two touches.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

T = TypeVar("T")

_WAKE_S = 5e-6
"""From a request to a thread until the thread begins with it."""


class _Work(Generic[T]):
    """Some work of a thread, and the future with its result."""

    running: "greenlet | None" = None
    """The greenlet of the work that has the turn now."""

    def __init__(self, work: Callable[[], T], then: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._greenlet = greenlet(work)
        self._then = then
        self.future: asyncio.Future[T] = self._loop.create_future()
        _KEPT.append(self._greenlet)

    def step(self) -> None:
        """Let it go on until its next pause, or to its end."""
        _Work.running = self._greenlet
        try:
            found = self._greenlet.switch()
        except Exception as error:  # noqa: BLE001 - the future has it
            self._end()
            if not self.future.done():
                self.future.set_exception(error)
            return
        finally:
            _Work.running = None
        if not self._greenlet.dead:
            self._loop.call_later(found, self.step)
            return
        self._end()
        if not self.future.done():
            self.future.set_result(found)

    def _end(self) -> None:
        _KEPT.remove(self._greenlet)
        self._then()


_KEPT: list[greenlet] = []
"""The unfinished work: a greenlet that is freed would run its ``finally`` blocks."""


class SimulatedThread:
    """A thread that does one thing after the other. Stands for ``LogThread``."""

    def __init__(self) -> None:
        self._queue: deque[_Work[float]] = deque()

    def run(self, work: Callable[[], float]) -> "asyncio.Future[float]":
        """See ``LogThread``."""
        one = _Work(work, self._next)
        self._queue.append(one)
        if len(self._queue) == 1:
            asyncio.get_running_loop().call_later(_WAKE_S, one.step)
        return one.future

    async def close(self) -> None:
        """See ``LogThread``."""
        while self._queue:
            await asyncio.wait([self._queue[-1].future])

    def _next(self) -> None:
        self._queue.popleft()
        if self._queue:
            asyncio.get_running_loop().call_later(_WAKE_S, self._queue[0].step)


def run_in_thread(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Let a thread of its own do some work."""
    one = _Work(work, _nothing)
    asyncio.get_running_loop().call_later(_WAKE_S, one.step)
    return one.future


def pause(seconds: float) -> None:
    """Let others go on for a time, if a thread runs; the event loop itself never waits."""
    running = _Work.running
    if running is not None and getcurrent() is running:
        running.parent.switch(seconds)


def forget_threads() -> None:
    """Forget all unfinished work."""
    while _KEPT:
        with suppress(Exception):  # Its ``finally`` blocks find nothing as they left it.
            _KEPT.pop().throw(GreenletExit)


def _nothing() -> None:
    """Go on with nothing."""
