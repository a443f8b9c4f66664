"""The event loop of a simulation: callbacks belong to processes, which stop, go on, and die.

Every callback carries the context in which it was made, and every context names the process it
belongs to, or none: then it is the world's, as the network is. The callbacks of a stopped process
wait until it goes on; those of a dead one never run: nothing is cancelled and no ``finally`` is
reached, as after SIGKILL.
"""

import asyncio
import gc
import sys
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from enum import Enum, auto
from heapq import heappop, heappush
from typing import Any, TypeVar
from weakref import WeakSet

from aiosemel._transform import stop_on_signal
from semel_runtime.testing.virtual_time import DeadlockError, VirtualTimeLoop
from simulation.threads import forget_threads, run_in_thread

T = TypeVar("T")

_RESOLUTION_S = 1e-6
_Future = asyncio.Future


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
        self.deferred: list[Step] = []
        self.tasks: WeakSet[asyncio.Task[object]] = WeakSet()
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
"""The context of callbacks that belong to no process."""


def life_of_now() -> Life | None:
    """Return the process whose callback runs; None: the world's."""
    return _LIFE.get(None)


class Step:
    """A callback that is to run, as asyncio.Handle and TimerHandle, and simpler."""

    __slots__ = ("_args", "_callback", "_context", "_when")

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[object, ...],
        context: Context | None,
        when: float,
    ) -> None:
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._context = copy_context() if context is None else context
        self._when = when

    def cancel(self) -> None:
        """See ``asyncio.Handle``."""
        self._callback = None
        self._args = ()

    def cancelled(self) -> bool:
        """See ``asyncio.Handle``."""
        return self._callback is None

    def when(self) -> float:
        """See ``asyncio.TimerHandle``."""
        return self._when

    @property
    def life(self) -> Life | None:
        """The process that it belongs to."""
        return self._context.get(_LIFE)


class _Task(asyncio.Task[T]):
    """A task with a hash that does not depend on its address."""

    def __init__(
        self,
        run: Coroutine[None, None, T],
        loop: "SimulatedLoop",
        context: Context | None,
        name: str | None,
    ) -> None:
        self._number = loop.next_task_number()  # first: the constructor puts it into a set
        super().__init__(run, loop=loop, context=context, name=name)
        self._log_destroy_pending = False  # tasks of dead processes are
        life = _LIFE.get(None) if context is None else context.get(_LIFE)
        if life is not None:
            life.tasks.add(self)

    def __hash__(self) -> int:
        return self._number


class SimulatedLoop(VirtualTimeLoop):
    """Virtual time, with processes.

    What asyncio's own loop does for each callback (checks, debugging, handles of many parts) took a
    fifth of a simulation's time: this one does what a simulation needs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._tasks_made = 0
        self._stopping: bool
        self._ready: deque[Step] = deque()
        # Tuples compare faster than steps would, those of one time in the order of their making.
        self._timers: list[tuple[float, int, Step]] = []
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
        self._dead += [task for task in life.tasks if not task.done()]
        life.tasks.clear()

    def start(self, life: Life, main: Coroutine[None, None, T]) -> "asyncio.Task[T]":
        """Start a task of a process."""
        return self.create_task(main, context=life.context)

    def next_task_number(self) -> int:
        """Return what tasks are told apart by in sets, the same in every run of a seed."""
        self._tasks_made += 1
        return self._tasks_made

    # -- what is called for everything that happens ----------------------------------------------

    def create_task(  # type: ignore[override]  # takes no generators
        self,
        coro: Coroutine[None, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> "asyncio.Task[T]":
        """See ``asyncio.AbstractEventLoop``."""
        return _Task(coro, self, context, name)

    def create_future(self) -> "asyncio.Future[Any]":
        """See ``asyncio.AbstractEventLoop``."""
        return _Future(loop=self)

    def run_in_executor(  # type: ignore[override]  # there are no executors
        self, _executor: None, func: Callable[..., T], *args: object
    ) -> "asyncio.Future[T]":
        """See ``asyncio.AbstractEventLoop``: the work is a simulated thread's."""
        return run_in_thread(lambda: func(*args))

    get_debug = staticmethod(bool)  # False, at no cost

    def call_soon(  # type: ignore[override]  # asyncio has no protocol of handles
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> Step:
        """See ``asyncio.AbstractEventLoop``."""
        step = Step(callback, args, context, self._now)
        self._ready.append(step)
        return step

    def call_later(  # type: ignore[override]  # as above
        self,
        delay: float,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
    ) -> Step:
        """See ``asyncio.AbstractEventLoop``."""
        when = self._now + delay
        step = Step(callback, args, context, when)
        self._timer_count = count = self._timer_count + 1
        heappush(self._timers, (when, count, step))
        return step

    def call_at(  # type: ignore[override]  # as above
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
    ) -> Step:
        """See ``asyncio.AbstractEventLoop``."""
        step = Step(callback, args, context, when)
        self._timer_count = count = self._timer_count + 1
        heappush(self._timers, (when, count, step))
        return step

    def has_left(self) -> bool:
        """Whether anything is to run, or dead."""
        return bool(self._ready or self._timers or self._dead)

    def drop_all(self) -> None:
        """Forget everything that was to run, and everything dead."""
        while self.has_left():  # What is freed may start something more.
            self._ready.clear()
            self._timers.clear()
            self._dead.clear()

    def _run_once(self) -> None:
        timers, ready = self._timers, self._ready
        while not self._stopping:
            if not ready:
                # A timer that was cancelled is no moment to jump to.
                while timers and timers[0][2]._callback is None:
                    heappop(timers)
                if not timers:
                    raise DeadlockError("everybody waits, and no timer is set")
                self._now = max(self._now, timers[0][0])
            due = self._now + _RESOLUTION_S
            while timers and timers[0][0] < due:
                ready.append(heappop(timers)[2])
            for _ in range(len(ready)):
                self._run_step(ready.popleft())

    def _run_step(self, step: Step) -> None:
        callback, context = step._callback, step._context
        if callback is None:
            return
        life = context.get(_LIFE)
        if life is not None and life.state is not State.RUNNING:
            if life.state is State.STOPPED:
                life.deferred.append(step)
            return
        self.steps += 1
        try:
            context.run(callback, *step._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as asyncio does
            self.call_exception_handler({"message": f"{callback} failed", "exception": error})


def _forget_signals() -> None:
    """Give back the signals that applications had taken when their processes were killed."""
    for end in tuple(stop_on_signal._TAKEN._ends):
        stop_on_signal._TAKEN.discard(end)


@contextmanager
def simulated_loop() -> Iterator[SimulatedLoop]:
    """Give the loop of one simulation; at the end, free all that was made on it.

    The collector need not look at the objects that are loaded by now: they stay. It would never
    free the loop, nor anything that refers to it, if the loop were one of them.
    """
    gc.disable()
    gc.freeze()
    loop = SimulatedLoop()
    # An exception that no task retrieves belonged to a killed process; others are noted elsewhere.
    loop.set_exception_handler(lambda *_: None)
    try:
        yield loop
    finally:
        bury(loop)
        gc.enable()


def bury(loop: SimulatedLoop) -> None:
    """Free the objects of a simulation, and ignore their complaints."""
    complain, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forget_threads()
            loop.drop_all()
            loop.close()
            _forget_signals()
            while gc.collect() or loop.has_left():  # What is freed may come back as a callback.
                loop.drop_all()
    finally:
        sys.unraisablehook = complain
