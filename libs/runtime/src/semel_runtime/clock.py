"""Wall-clock time as an input: machines never read it, shells are given one of these."""

import time
from typing import Protocol

JUMP_MS = 1_000
"""A clock that was set by less is as good as right."""


class Clock(Protocol):
    """Tells the time."""

    @property
    def jumps(self) -> int:
        """How many jumps of the clock its readers have met.

        The clock counts a jump before it returns a time after the jump.
        """
        ...

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC; may jump either way."""
        ...


class JumpCounter:
    """Counts the jumps of a clock on the wall, by one that never jumps."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.jumps = 0
        self._ahead_ms: int | None = None

    def note(self, now_ms: int, steady_ms: int) -> None:
        """Note what both say now."""
        ahead_ms = now_ms - steady_ms
        if self._ahead_ms is not None and abs(ahead_ms - self._ahead_ms) > JUMP_MS:
            self.jumps += 1
        self._ahead_ms = ahead_ms


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        """Read no clock yet."""
        self._counter = JumpCounter()

    @property
    def jumps(self) -> int:
        """See ``Clock.jumps``."""
        return self._counter.jumps

    def now_ms(self) -> int:
        """Return the machine's time."""
        now_ms = time.time_ns() // 1_000_000
        self._counter.note(now_ms, time.monotonic_ns() // 1_000_000)
        return now_ms
