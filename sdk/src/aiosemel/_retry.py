"""How long, and how often: deadlines, and pauses that grow from attempt to attempt."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from aiosemel.options import ClientOptions

_JITTER = 0.2
_DOUBLINGS_MAX = 32


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the event loop's clock, in seconds."""

    at: float

    @classmethod
    def after_ms(cls, timeout_ms: float) -> "Deadline":
        """Return the moment that is ``timeout_ms`` from now."""
        return cls(asyncio.get_running_loop().time() + timeout_ms / 1000)

    def remaining_ms(self) -> int:
        """Return what is left, in milliseconds; 0 when it has passed."""
        left = self.at - asyncio.get_running_loop().time()
        return max(0, round(left * 1000))

    @property
    def passed(self) -> bool:
        """Whether nothing is left."""
        return self.remaining_ms() == 0


async def until(waiter: "asyncio.Future[None]", deadline: Deadline | None) -> None:
    """Wait for a future; None: for ever. Raises TimeoutError at the deadline.

    As ``asyncio.timeout_at``, for the waits of every transaction, at a third of the cost: it ends
    the future rather than cancel the task.
    """
    if deadline is None:
        await waiter
        return
    timer = asyncio.get_running_loop().call_at(deadline.at, _time_out, waiter)
    try:
        await waiter
    finally:
        timer.cancel()


def _time_out(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


def pause_ms(options: ClientOptions, random: Random, attempts: int) -> float:
    """Return the pause after so many attempts: doubled up to the longest, 20 % more or less."""
    doubled = options.retry_backoff_ms * 2.0 ** min(attempts - 1, _DOUBLINGS_MAX)
    return min(doubled, options.retry_backoff_max_ms) * random.uniform(1 - _JITTER, 1 + _JITTER)


def pauses_ms(options: ClientOptions, random: Random) -> Iterator[float]:
    """Yield the pauses after attempt 1, 2, and so on."""
    return (pause_ms(options, random, attempts) for attempts in count(1))
