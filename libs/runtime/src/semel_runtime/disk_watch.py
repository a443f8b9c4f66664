"""Tells the log when a journal's disk is nearly full, and when there is room again: once each."""

import asyncio
from pathlib import Path

import structlog

from semel_runtime.journal.base import Journal

log = structlog.get_logger(__name__)

_INTERVAL_S = 1.0


class DiskWatch:
    """Looks at the disk of one journal."""

    def __init__(self, journal: Journal, folder: Path, *, reserve_bytes: int) -> None:
        """Say nothing yet."""
        self._journal = journal
        self._facts = {"folder": str(folder), "reserve_bytes": reserve_bytes}
        self._has_room = True

    async def run(self) -> None:
        """Look every second until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(_INTERVAL_S)

    def look(self) -> None:
        """Look once, and tell what has changed."""
        try:
            has_room, free_bytes = self._journal.has_room(), self._journal.free_bytes()
        except OSError:
            return  # Of a disk that is gone, each write tells.
        before, self._has_room = self._has_room, has_room
        if before and not has_room:
            log.error(
                "disk is nearly full: new records are refused; free some space or shorten"
                " retention",
                free_bytes=free_bytes,
                **self._facts,
            )
        elif has_room and not before:
            log.info(
                "disk has room again: new records are taken", free_bytes=free_bytes, **self._facts
            )
