"""Who waits for room in the buffer, and who for a flush: futures, kept out of the machines."""

import asyncio
from collections import deque

from aiosemel._producer.accumulator import Accumulator
from aiosemel._retry import Deadline
from aiosemel.errors import RequestTimedOutError


class Room:
    """Lets appends wait, first come first served, until the accumulator has room for them."""

    def __init__(self, accumulator: Accumulator) -> None:
        self._accumulator = accumulator
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._granted_bytes = 0

    def is_free(self, size_bytes: int) -> bool:
        """Return whether records of this size may be appended now, ahead of nobody."""
        return not self._waiters and self._accumulator.has_room(size_bytes + self._granted_bytes)

    async def wait(self, size_bytes: int, deadline: Deadline) -> None:
        """Wait for room, and for one's turn; append in the same step, or lose it.

        Raises RequestTimedOutError.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((size_bytes, waiter))
        try:
            async with asyncio.timeout_at(deadline.at):
                await waiter
        except TimeoutError:
            raise RequestTimedOutError(
                f"no room for {size_bytes} bytes in the buffer, "
                f"{self._accumulator.used_bytes} bytes wait for acknowledgement"
            ) from None
        finally:
            if waiter.done() and not waiter.cancelled():
                self._granted_bytes -= size_bytes
            else:
                self._waiters.remove((size_bytes, waiter))
                self.grant()

    def grant(self) -> None:
        """Give the room that there is to those who wait."""
        while self._waiters:
            size_bytes, waiter = self._waiters[0]
            if not waiter.done():
                if not self._accumulator.has_room(size_bytes + self._granted_bytes):
                    return
                self._granted_bytes += size_bytes
                waiter.set_result(None)
            self._waiters.popleft()


class Flushes:
    """Lets callers wait until all batches of a flush are done."""

    def __init__(self, accumulator: Accumulator) -> None:
        self._accumulator = accumulator
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    async def wait(self, number: int, deadline: Deadline | None) -> None:
        """Wait until a flush is done, or ``interrupt``. Raises RequestTimedOutError."""
        if self._accumulator.is_flushed(number):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (number, waiter)
        self._waiters.append(entry)
        try:
            async with asyncio.timeout_at(None if deadline is None else deadline.at):
                await waiter
        except TimeoutError:
            raise RequestTimedOutError("not everything was acknowledged in time") from None
        finally:
            if entry in self._waiters:
                self._waiters.remove(entry)

    def check(self) -> None:
        """Wake those whose flush is done."""
        if self._waiters:
            for number, waiter in self._waiters:
                if self._accumulator.is_flushed(number) and not waiter.done():
                    waiter.set_result(None)

    def interrupt(self) -> None:
        """Wake all: there is nothing left to wait for."""
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
