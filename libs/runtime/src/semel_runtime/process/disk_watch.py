"""Tells the log when the disk of a journal is below its reserve, and when it has room again."""

import asyncio
from collections.abc import Callable

import structlog

from semel_runtime.journal.contract import Journal

log = structlog.get_logger(__name__)

_INTERVAL_S = 0.5
_REPEAT_S = 60.0


class DiskWatch:
    """Looks at the disk of one journal.

    The log gets a line when a shortage begins, one more each minute that it lasts, and one when it
    is over.
    """

    def __init__(self, journal: Journal, *, clock_s: Callable[[], float]) -> None:
        """Look at nothing yet; ``clock_s`` returns the time in seconds."""
        self._journal = journal
        self._clock_s = clock_s
        self._told_at: float | None = None
        """When the log was last told of the shortage; None: there is none."""

    async def run(self) -> None:
        """Look twice a second until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(_INTERVAL_S)

    def look(self) -> None:
        """Look once, and tell what has changed."""
        try:
            shortage, free_bytes = self._journal.shortage(), self._journal.free_bytes()
        except OSError:
            return  # The next write finds out that the disk is gone.
        now = self._clock_s()
        if shortage is None:
            if self._told_at is not None:
                log.info("disk has room again: new records are taken", free_bytes=free_bytes)
            self._told_at = None
        elif self._told_at is None or now - self._told_at >= _REPEAT_S:
            self._told_at = now
            log.error(
                "disk is nearly full: new records are refused; enlarge the volume, delete records"
                " or shorten retention",
                free_bytes=shortage.free_bytes,
                folder=shortage.folder,
                disk_reserve_bytes=shortage.reserve_bytes,
            )
