"""Wall-clock time as an input: machines never read it, shells are given one of these."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC; may jump either way."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the machine's time."""
        return time.time_ns() // 1_000_000
