"""Ends what runs, in order, when a signal asks the process to end.

Signals belong to the process. So this module takes them only in the main thread, and only signals
that would end the process by default: a handler of the program, and a signal that the process
ignores, stay as they are. The first signal reaches everything that runs here, and gives the signals
back, so a second one has its usual effect.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType

from semel_common.library_log import get_logger
from semel_common.stop_signals import STOP_SIGNALS

_log = get_logger(__name__)


async def run_until_signal(run: Coroutine[None, None, None], stop: Callable[[], float]) -> None:
    """Run to the end; at a signal, call ``stop`` first, which asks the run to end.

    ``stop`` returns how long the run may go on, in milliseconds: then it is cancelled, and has
    ended as well.
    """
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)

    def end(number: int) -> None:
        if end_later in running:  # Else it has ended since the signal came.
            _log.info("%s: ending", signal.Signals(number).name)
            limit.reschedule(loop.time() + stop() / 1000)

    def end_later(number: int) -> None:
        loop.call_soon_threadsafe(end, number)

    running = {end_later}
    try:
        async with limit:
            _TAKEN.add(end_later)
            try:
                await run
            finally:
                running.clear()
                _TAKEN.discard(end_later)
    except TimeoutError:
        if not limit.expired():
            raise


class _Taken:
    """The signals that this module has taken, and the loops that they end."""

    def __init__(self) -> None:
        self._ends: dict[Callable[[int], object], None] = {}
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def add(self, end: Callable[[int], object]) -> None:
        """Let a signal end this too."""
        if threading.current_thread() is not threading.main_thread():
            return
        if not self._ends:
            self._before = {each: signal.getsignal(each) for each in STOP_SIGNALS if _ends(each)}
            for number in self._before:
                signal.signal(number, self._received)
        self._ends[end] = None

    def discard(self, end: Callable[[int], object]) -> None:
        """Let no signal end this any more; the last one gives the signals back."""
        if self._ends.pop(end, self) is None and not self._ends:
            self._give_back()

    def _received(self, number: int, _frame: FrameType | None) -> None:
        """Only pass it on: a handler may run within any call, where a log must not be written."""
        self._give_back()
        ends = tuple(self._ends)
        self._ends.clear()
        for end in ends:
            end(number)

    def _give_back(self) -> None:
        for each, handler in self._before.items():
            if signal.getsignal(each) == self._received:  # Else the program has set its own.
                signal.signal(each, handler)
        self._before = {}


_TAKEN = _Taken()


def _ends(number: signal.Signals) -> bool:
    """Whether a signal would end the process, or the main task of ``asyncio.run``."""
    handler = signal.getsignal(number)
    if handler in (signal.SIG_DFL, signal.default_int_handler):
        return True
    runner = getattr(getattr(handler, "func", None), "__self__", None)
    return isinstance(runner, asyncio.Runner)
