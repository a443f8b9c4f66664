"""An event loop in which waiting takes no time: when nothing is ready, the next timer's time is."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting, moves the time on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events:
            assert timeout is not None, "everybody waits, and nothing will ever happen"
            self.now += timeout
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop without I/O, whose time is that of its timers."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def be_stopped_for(self, duration_ms: int) -> None:
        """Let time pass in which nothing runs, as if the process had been stopped."""
        self._jumping.now += duration_ms / 1000


def in_virtual_time(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run an async test on a loop of its own in virtual time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


async def after(duration_ms: int) -> None:
    """Return when so much time has passed."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(duration_ms / 1000, passed.set)
    await passed.wait()


class LoopClock:
    """A clock on the wall that goes with the loop's time. Implements ``Clock``."""

    def now_ms(self) -> int:
        return 1_000_000 + int(asyncio.get_running_loop().time() * 1000)
