"""The event loop of a simulation: callbacks belong to processes, which stop, go on, and die.

Every callback carries the context in which it was made, and every context names the process it
belongs to, or none: then it is the world's, as the network is. The callbacks of a stopped process
wait until it goes on; those of a dead one never run: nothing is cancelled and no ``finally`` is
reached, as after SIGKILL.
"""

import asyncio
import gc
import heapq
import sys
import warnings
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from enum import Enum, auto
from typing import TypeVar

from semel_runtime.testing.virtual_time import DeadlockError, VirtualTimeLoop

T = TypeVar("T")

_RESOLUTION_S = 1e-6
_CANCELLED_MIN = 500


class State(Enum):
    """Whether a process runs."""

    RUNNING = auto()
    STOPPED = auto()
    DEAD = auto()


class Life:
    """One process, from its start to its end."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.state = State.RUNNING
        self.deferred: list[asyncio.Handle] = []
        self.context = Context()
        self.context.run(_LIFE.set, self)

    @property
    def alive(self) -> bool:
        """Whether it has not ended; it may be stopped."""
        return self.state is not State.DEAD

    def __repr__(self) -> str:
        return f"{self.name}#{self.number}"


_LIFE: ContextVar[Life] = ContextVar("life")
WORLD = Context()
"""The context of what belongs to no process."""


class _Task(asyncio.Task[T]):
    """A task whose place in a set does not depend on its address."""

    def __init__(
        self,
        run: Coroutine[None, None, T],
        loop: "SimulatedLoop",
        context: Context | None,
    ) -> None:
        self._number = loop.next_task_number()  # first: the constructor puts it into a set
        self.life = _LIFE.get(None) if context is None else context.get(_LIFE)
        super().__init__(run, loop=loop, context=context)
        self._log_destroy_pending = False  # tasks of dead processes are

    def __hash__(self) -> int:
        return self._number


class SimulatedLoop(VirtualTimeLoop):
    """Virtual time, with processes."""

    def __init__(self) -> None:
        super().__init__()
        self.set_task_factory(_make_task)  # type: ignore[arg-type]  # knows of no contexts
        self._tasks_made = 0
        self._timer_cancelled_count: int
        self._ready: deque[asyncio.Handle]
        # Tuples compare faster than handles do, and those of one time in the order of their making.
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_count = 0
        self._dead: list[asyncio.Task[object]] = []
        self.steps = 0
        """How many callbacks have run."""

    def stop_life(self, life: Life) -> None:
        """Let a process stand still, as SIGSTOP does."""
        if life.state is State.RUNNING:
            life.state = State.STOPPED

    def resume_life(self, life: Life) -> None:
        """Let it go on: all that came meanwhile comes now."""
        if life.state is State.STOPPED:
            life.state = State.RUNNING
            self._ready.extend(life.deferred)
            life.deferred.clear()

    def end_life(self, life: Life) -> None:
        """End a process at once."""
        life.state = State.DEAD
        # Nothing of it may be freed before the end: that would run its ``finally`` blocks.
        self._dead += [task for task in asyncio.all_tasks(self) if _life_of(task) is life]

    def start(self, life: Life, main: Coroutine[None, None, T]) -> "asyncio.Task[T]":
        """Start a task of a process."""
        return self.create_task(main, context=life.context)

    def next_task_number(self) -> int:
        """Return what tasks are told apart by in sets, the same in every run of a seed."""
        self._tasks_made += 1
        return self._tasks_made

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """See ``asyncio.AbstractEventLoop``."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]  # so that cancelling counts it
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._timer_count, timer))
        return timer

    def drop_all(self) -> None:
        """Forget everything that was to run, and everything dead."""
        self._ready.clear()
        self._timers.clear()
        self._dead.clear()

    def _run_once(self) -> None:
        self._forget_cancelled_timers()
        timers, ready = self._timers, self._ready
        if not ready:
            if not timers:
                raise DeadlockError("everybody waits, and no timer is set")
            self._now = max(self._now, timers[0][0])
        due = self._now + _RESOLUTION_S
        while timers and timers[0][0] < due:
            timer = heapq.heappop(timers)[2]
            timer._scheduled = False  # type: ignore[attr-defined]  # as above
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            life = handle._context.get(_LIFE)  # type: ignore[attr-defined]  # undeclared
            if life is not None and life.state is not State.RUNNING:
                if life.state is State.STOPPED:
                    life.deferred.append(handle)
                continue
            self.steps += 1
            handle._run()

    def _forget_cancelled_timers(self) -> None:
        timers = self._timers
        cancelled = self._timer_cancelled_count
        if cancelled > _CANCELLED_MIN and 2 * cancelled > len(timers):
            timers[:] = [each for each in timers if not each[2]._cancelled]
            heapq.heapify(timers)
            self._timer_cancelled_count = 0
        while timers and timers[0][2]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(timers)


def _make_task(
    loop: asyncio.AbstractEventLoop,
    run: Coroutine[None, None, T],
    context: Context | None = None,
) -> "asyncio.Task[T]":
    assert isinstance(loop, SimulatedLoop)
    return _Task(run, loop, context)


def _life_of(task: "asyncio.Task[object]") -> Life | None:
    return task.life if isinstance(task, _Task) else None


def bury(loop: SimulatedLoop) -> None:
    """Free what is left of a simulation, without listening to its complaints."""
    complain, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loop.drop_all()
            loop.close()
            while gc.collect():
                pass
    finally:
        sys.unraisablehook = complain
