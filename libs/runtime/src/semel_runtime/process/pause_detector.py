"""Whether a process has been running all along: nothing is forgotten right after a pause. Pure.

What came to a process while it was paused lies in its buffers, as old as the pause. By the clock,
everything was idle for that long, so a loop that forgets by the clock alone forgets first and reads
the late messages then. A tick is steady only if the one before it was not long ago: by then, the
process has answered what had come meanwhile. The same holds after a start, or a jump of the clock.

Buffers are not all. After a jump by a day, a producer that wrote a second ago has been idle for a
day, and its messages may still be under way, or come once more. So a loop that forgets fences names
a time to settle, and no tick is steady before it has passed. It is counted in ticks, because the
clock that has jumped cannot measure it. Ticks do not see a clock that is set and set right again
between two of them, but a producer that wrote meanwhile has a wrong time: so the clock itself
counts its jumps.
"""

_GAP_TICKS = 2


class SteadyTicks:
    """Ticks of one background loop, by the wall clock."""

    def __init__(self, interval_ms: int, *, settling_ms: int = 0) -> None:
        """Expect a tick every ``interval_ms``; let as many pass as ``settling_ms`` has, or one."""
        self._interval_ms = interval_ms
        self._settling_ms = settling_ms
        self._ticks = 0
        """How many have come in time, one after the other."""
        self._last_ms: int | None = None
        self._jumps = 0

    def is_steady(self, now_ms: int, jumps: int) -> bool:
        """Note a tick, and how often the clock has jumped by now.

        Answers whether those before it were when they should have been.
        """
        last_ms, self._last_ms = self._last_ms, now_ms
        jumps_before, self._jumps = self._jumps, jumps
        in_time = (
            last_ms is not None
            and 0 <= now_ms - last_ms <= _GAP_TICKS * self._interval_ms
            and jumps == jumps_before
        )
        self._ticks = self._ticks + 1 if in_time else 0
        return self._ticks > 0 and self._ticks * self._interval_ms >= self._settling_ms
