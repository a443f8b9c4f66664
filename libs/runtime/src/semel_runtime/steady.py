"""Whether a process has been running all along: nothing is forgotten right after a pause. Pure.

What came to a process while it was paused lies in its buffers, as old as the pause. By the clock,
everything was idle for that long, so whoever forgets by the clock alone forgets first and reads the
late messages then. A tick is steady only if the one before it was not long ago: by then, the
process has answered what had come meanwhile. The same holds after a start, or a jump of the clock.
"""

_GAP_TICKS = 2


class SteadyTicks:
    """Ticks of one background loop, by the wall clock."""

    def __init__(self, interval_ms: int) -> None:
        """Expect a tick every ``interval_ms``."""
        self._gap_max_ms = _GAP_TICKS * interval_ms
        self._last_ms: int | None = None

    def is_steady(self, now_ms: int) -> bool:
        """Note a tick; answers whether the one before it was when it should have been."""
        last_ms, self._last_ms = self._last_ms, now_ms
        return last_ms is not None and 0 <= now_ms - last_ms <= self._gap_max_ms
