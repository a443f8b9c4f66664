"""Lines of the log that anybody can cause, as often as they like: one in a second, with a count."""

import time

_QUIET_S = 1.0


class Seldom:
    """Counts what happens, and says when it is to be logged."""

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self._count = 0
        self._quiet_until = 0.0

    def count(self) -> int:
        """Count one more. Returns how many a line is to tell of now; 0: none is to be written."""
        self._count += 1
        now = time.monotonic()
        if now < self._quiet_until:
            return 0
        self._quiet_until = now + _QUIET_S
        count, self._count = self._count, 0
        return count
