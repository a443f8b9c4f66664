"""Waiting for the next version of the metadata."""

import asyncio
from collections.abc import Callable


class VersionGate:
    """Parks calls until the metadata is newer than theirs."""

    def __init__(self, version: Callable[[], int]) -> None:
        """Ask ``version`` for the newest one."""
        self._version = version
        self._announced = 0
        self._changed = asyncio.Event()
        self._open = False

    def announce(self) -> None:
        """Look for a newer version, and if there is one, wake all who wait."""
        version = self._version()
        if version != self._announced:
            self._announced = version
            self._wake()

    def open(self) -> None:
        """End all waits: the process is about to stop."""
        self._open = True
        self._wake()

    async def wait(self, *, known_version: int, max_wait_ms: int) -> None:
        """Return once there is a newer version, or the time is over."""
        try:
            async with asyncio.timeout(max_wait_ms / 1000):
                while self._version() <= known_version and not self._open:
                    await self._changed.wait()
        except TimeoutError:
            pass

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
