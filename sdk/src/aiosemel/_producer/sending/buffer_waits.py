"""Callers that wait for room in the buffer or for a flush: futures, kept out of the machines."""

import asyncio

from aiosemel._cluster.last_error import Trouble
from aiosemel._cluster.retry import Deadline, until
from aiosemel._producer.batching.accumulator import Accumulator
from aiosemel.errors import RequestTimedOutError


class Room:
    """Lets appends wait, first come first served, until the accumulator has room for them."""

    def __init__(self, accumulator: Accumulator, trouble: Trouble) -> None:
        self._accumulator = accumulator
        self._memory_bytes = accumulator.memory_bytes
        self._trouble = trouble
        self._waiters: dict[asyncio.Future[None], int] = {}
        """Sizes, first come first."""
        self._granted_bytes = 0
        """Room that was given to waiters who have not used it yet."""

    @property
    def free_bytes(self) -> int:
        """How much may be appended now, if no caller waits."""
        return self._memory_bytes - self._accumulator.used_bytes - self._granted_bytes

    def is_free(self, size_bytes: int) -> bool:
        """Return whether records of this size may be appended now, without overtaking a waiter."""
        return size_bytes <= self.free_bytes and not self._waiters

    async def wait(self, size_bytes: int, deadline: Deadline) -> None:
        """Wait for room, and for one's turn; append in the same step, or leave it to the next.

        Raises RequestTimedOutError.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = size_bytes
        try:
            await until(waiter, deadline)
        except TimeoutError:
            self._leave(waiter, size_bytes)
            raise RequestTimedOutError(
                f"no room for {size_bytes} bytes in the buffer, "
                f"{self._accumulator.used_bytes} bytes wait for acknowledgement"
                f"{self._trouble.suffix}"
            ) from None
        except asyncio.CancelledError:
            self._leave(waiter, size_bytes)
            raise
        self._granted_bytes -= size_bytes
        if self._waiters:  # The caller may not use it: no other task would wake the next.
            asyncio.get_running_loop().call_soon(self.grant)

    def grant(self) -> None:
        """Give the free room to the waiting callers."""
        while self._waiters:
            waiter, size_bytes = next(iter(self._waiters.items()))
            if not waiter.done():
                if not self._accumulator.has_room(size_bytes + self._granted_bytes):
                    return
                self._granted_bytes += size_bytes
                waiter.set_result(None)
            del self._waiters[waiter]

    def _leave(self, waiter: "asyncio.Future[None]", size_bytes: int) -> None:
        """Give up one's turn, or the room that came with it."""
        self._waiters.pop(waiter, None)
        if _is_granted(waiter):
            self._granted_bytes -= size_bytes
        self.grant()


def _is_granted(waiter: "asyncio.Future[None]") -> bool:
    return waiter.done() and not waiter.cancelled() and waiter.exception() is None


class Flushes:
    """Lets callers wait until all batches of a flush are done."""

    def __init__(self, accumulator: Accumulator, trouble: Trouble) -> None:
        self._accumulator = accumulator
        self._trouble = trouble
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    async def wait(self, number: int, deadline: Deadline | None) -> None:
        """Wait until a flush is done, or ``interrupt``. Raises RequestTimedOutError."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (number, waiter)
        self._waiters.append(entry)
        try:
            await until(waiter, deadline)
        except TimeoutError:
            raise RequestTimedOutError(
                f"not everything was acknowledged in time{self._trouble.suffix}"
            ) from None
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
