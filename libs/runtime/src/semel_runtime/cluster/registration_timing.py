"""When an instance registers again: at each interval, and at once when its disk changes."""

import asyncio
from collections.abc import Callable

from semel_runtime.journal.contract import DiskShortage

_LOOK_S = 0.5
"""How often to look at the disk: operators are to learn of a shortage within two seconds."""


class RegistrationTimer:
    """Waits for the next registration of one instance."""

    def __init__(self, shortage: Callable[[], DiskShortage | None], interval_ms: int) -> None:
        """Register every ``interval_ms``; ``shortage`` looks at the disk."""
        self._look = shortage
        self._interval_s = interval_ms / 1000
        self._was_short = False

    def shortage(self) -> DiskShortage | None:
        """Return what to register of the disk; ``wait`` ends once that is no longer true."""
        found = self._looked()
        self._was_short = found is not None
        return found

    async def wait(self) -> None:
        """Wait until the interval is over, or until the disk is short of space or no longer is."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + self._interval_s
        while True:
            await asyncio.sleep(min(_LOOK_S, max(0.0, due_s - loop.time())))
            if loop.time() >= due_s or (self._looked() is not None) != self._was_short:
                return

    def _looked(self) -> DiskShortage | None:
        try:
            return self._look()
        except OSError:
            return None  # The next write finds out that the disk is gone.
