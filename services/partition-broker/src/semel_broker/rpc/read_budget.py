"""The bytes that reads may hold: granted before a read, given back once its answer is written.

A read is granted the bytes that it asks for, or the rest if that is worth a read. A read that finds
less waits in line: others soon know that they need less than they were granted. Only a single batch
may be larger than its grant.
"""

import asyncio
from collections import deque

_WORTH_SHARE = 16
"""A grant is worth a read if it is one part in so many of the whole."""


class Budget:
    """A number of bytes, shared by all reads of a process."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._waiting: deque[tuple[int, asyncio.Future[int]]] = deque()
        self.held_bytes = 0

    def has_room(self) -> bool:
        """Whether a read would be granted anything."""
        return not self._waiting and self._grantable(self._max_bytes) > 0

    async def reserve(self, wanted_bytes: int, *, until: float) -> int:
        """Grant some bytes, after the reads that wait already; 0 if there were none until then."""
        granted_bytes = 0 if self._waiting else self._grantable(wanted_bytes)
        if granted_bytes:
            self.held_bytes += granted_bytes
            return granted_bytes
        granted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        entry = (wanted_bytes, granted)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout_at(until):
                await granted
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self.release(_granted(granted))
            raise
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
                self._grant_on()  # Who stands behind may want less.
        return _granted(granted)

    def take(self, size_bytes: int) -> None:
        """Hold the bytes that a read has found, in place of its grant."""
        self.held_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        """Give bytes back."""
        self.held_bytes -= size_bytes
        self._grant_on()

    def _grant_on(self) -> None:
        while self._waiting:
            wanted_bytes, granted = self._waiting[0]
            granted_bytes = self._grantable(wanted_bytes)
            if not granted_bytes:
                return
            self._waiting.popleft()
            # A future that was cancelled belongs to a call that has given up in this moment.
            if not granted.cancelled():
                self.held_bytes += granted_bytes
                granted.set_result(granted_bytes)

    def _grantable(self, wanted_bytes: int) -> int:
        free_bytes = self._max_bytes - self.held_bytes
        worth_bytes = max(1, min(wanted_bytes, self._max_bytes // _WORTH_SHARE))
        return min(wanted_bytes, free_bytes) if free_bytes >= worth_bytes else 0


def _granted(granted: "asyncio.Future[int]") -> int:
    return granted.result() if granted.done() and not granted.cancelled() else 0
