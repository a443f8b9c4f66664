"""Turns of lists: an instance reads one list at a time, and its callers take turns.

A list reads thousands of entries for a request of a few bytes. It reads them in pieces, and other
calls go on between two pieces. Without turns, each of them would wait for one piece of every list.
A caller that asks for many lists waits behind the callers that ask for few.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from semel_runtime.authentication.principal import Origin
from semel_runtime.server.limits.caller_shares import Holder, holder_of

_PAUSE_S = 0.001
"""So long that gRPC takes up several calls: it takes up one in each turn of the event loop."""
_WORK_S = 0.002
"""How long a list works between two pauses, if its pieces are shorter."""
_PIECES_MAX = 40
"""How many pieces a list works on between two pauses, however short they are."""


async def pause() -> None:
    """Let other calls go on between two pieces of a list."""
    await asyncio.sleep(_PAUSE_S)


class ListPauses:
    """The pauses of one list whose pieces may take microseconds or milliseconds."""

    def __init__(self, time: Callable[[], float] | None = None) -> None:
        """Begin the work now, by a clock of seconds; None: that of the event loop."""
        self._time = time or asyncio.get_running_loop().time
        self._begin()

    def _begin(self) -> None:
        self._began_s, self._pieces = self._time(), 0

    async def after_piece(self) -> None:
        """Let other calls go on if the list has worked for long since its last pause."""
        self._pieces += 1
        if self._pieces >= _PIECES_MAX or self._time() - self._began_s >= _WORK_S:
            await pause()
            self._begin()


class ListTurns:
    """The turns of one instance."""

    def __init__(self) -> None:
        """Begin without a list."""
        self._is_taken = False
        self._waiting: dict[Holder, dict[asyncio.Future[None], None]] = {}
        """The calls of each caller, in order; the first caller has the next turn."""

    @asynccontextmanager
    async def turn(self, origin: Origin) -> AsyncIterator[None]:
        """Wait for a turn of the caller, and keep it until the end of the block."""
        if self._is_taken:
            await self._wait(holder_of(origin))
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, holder: Holder) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, {})[granted] = None
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                self._remove(holder, granted)
            else:
                self._pass_on()  # The turn came at the moment of the cancellation.
            raise

    def _remove(self, holder: Holder, granted: "asyncio.Future[None]") -> None:
        calls = self._waiting[holder]
        del calls[granted]
        if not calls:
            del self._waiting[holder]

    def _pass_on(self) -> None:
        """Give the turn to the next caller, and put this caller behind all others."""
        for holder, calls in self._waiting.items():
            for granted in calls:
                if not granted.done():
                    self._remove(holder, granted)
                    if holder in self._waiting:
                        self._waiting[holder] = self._waiting.pop(holder)
                    granted.set_result(None)
                    return
        self._is_taken = False
