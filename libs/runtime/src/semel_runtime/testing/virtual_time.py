"""An event loop in virtual time: when nothing is ready, it is the time of the next timer.

There is no I/O, no thread and no real clock: the same callbacks run in the same order at the same
times, whatever the machine does meanwhile. What would break that (files, sockets, executors) is
refused.
"""

import asyncio
from asyncio import base_events
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

from semel_runtime.clock import JumpCounter

P = ParamSpec("P")
T = TypeVar("T")

_START_MS = 1_700_000_000_000
_RESOLUTION_S = 1e-6


class DeadlockError(RuntimeError):
    """Everybody waits, and nothing will ever happen."""


class VirtualTimeLoop(base_events.BaseEventLoop):
    """Runs callbacks first come, first served, and timers in order, without waiting for them."""

    def __init__(self) -> None:
        """Start at 0 s."""
        super().__init__()
        self._now = 0.0
        # Coarser than the rounding of a sum of times, or a timer might never be due.
        self._clock_resolution = _RESOLUTION_S
        self._selector = _JumpingSelector(self)

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._now

    def jump(self, duration_ms: float) -> None:
        """Let time pass in which nothing runs, as if the process had been stopped."""
        self._now += duration_ms / 1000

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        """Do as ``call_soon``: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(
        self, _executor: object, func: Callable[..., object], *_: object
    ) -> NoReturn:
        """Refuse: a thread ends when it likes."""
        raise RuntimeError(f"{func} in an executor: there are no threads in virtual time")

    def _process_events(self, event_list: list[NoReturn]) -> None:
        assert not event_list, "there is no I/O"

    def _write_to_self(self) -> None:
        """Wake no thread: the next turn sees signals."""


class _JumpingSelector:
    """Stands where asyncio's own loop waits for I/O."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[NoReturn]:
        if timeout is None:
            raise DeadlockError("everybody waits, and no timer is set")
        if timeout > 0:
            self._loop.jump(timeout * 1000)
        return []


class LoopClock:
    """A clock on the wall that goes with the loop's time. Implements ``Clock``."""

    def __init__(self, start_ms: int = _START_MS) -> None:
        """Say what the time of day is when the loop's is 0."""
        self.start_ms = start_ms
        """Changed, it is a clock that was set."""
        self._counter = JumpCounter()

    @property
    def jumps(self) -> int:
        """See ``Clock.jumps``."""
        return self._counter.jumps

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC."""
        steady_ms = int(asyncio.get_running_loop().time() * 1000)
        self._counter.note(self.start_ms + steady_ms, steady_ms)
        return self.start_ms + steady_ms


async def after(duration_ms: float) -> None:
    """Return when so much time has passed."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    timer = loop.call_later(duration_ms / 1000, _pass, passed)
    try:
        await passed
    finally:
        timer.cancel()


async def ended(task: "asyncio.Task[None]", *, expected: tuple[type[Exception], ...] = ()) -> None:
    """Cancel a task, and return when it has ended.

    Raises the error of a task that has failed by itself, unless the error is an expected one.
    """
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        try:
            task.result()
        except* expected:
            pass  # asyncio logs errors that no caller fetches.


def in_virtual_time(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run an async test on a loop of its own in virtual time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_in_virtual_time(test(*args, **kwargs))

    return run


def run_in_virtual_time(main: Coroutine[None, None, T]) -> T:
    """Run a coroutine, and all that it starts, on a loop of its own in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)


def _pass(passed: "asyncio.Future[None]") -> None:
    if not passed.done():
        passed.set_result(None)
