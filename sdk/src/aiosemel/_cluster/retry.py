"""How long, and how often: deadlines, and pauses that grow from attempt to attempt."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from aiosemel._cluster.failures import Failures
from aiosemel._cluster.last_error import named
from aiosemel._cluster.permanent_errors import UNHEALED, UNHEALED_MAX
from aiosemel.errors import (
    ConcurrentTransactionsError,
    RequestTimedOutError,
    RetriableError,
    UnknownTopicOrPartitionError,
)
from aiosemel.options.client_options import ClientOptions
from semel_common.library_log import get_logger

_log = get_logger(__name__)

CONCURRENT_TRANSACTIONS_BACKOFF_MS = 20
"""As Kafka's: markers take milliseconds, and then the transaction may go on."""
QUIET_MS = 1_000
"""How long a call may fail before the log is told: most failures are over by then."""
ADDRESS = "address"
"""The detail of an error that says which address was called."""
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
        """Return the rest of the time, in milliseconds; 0 after its end."""
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


def growing_pauses_ms(first_ms: float, longest_ms: float) -> Iterator[float]:
    """Yield pauses, each twice as long as the one before, up to the longest."""
    pause_ms = first_ms
    while True:
        yield pause_ms
        pause_ms = min(2 * pause_ms, longest_ms)


class Pauses:
    """The pauses after attempt 1, 2, and so on of one call, in milliseconds."""

    def __init__(self, options: ClientOptions, random: Random, *, is_told: bool = False) -> None:
        """``is_told``: the caller itself tells the log of what fails."""
        self._failures = None if is_told else Failures(quiet_ms=QUIET_MS)
        self._pauses = (pause_ms(options, random, attempts) for attempts in count(1))
        self._unhealed = 0

    def __iter__(self) -> Iterator[float]:
        return self

    def __next__(self) -> float:
        return next(self._pauses)

    def warn_of(self, error: RetriableError) -> None:
        """Tell the log of a call that has failed for a while, at first and from time to time."""
        if self._failures is not None:
            level = self._failures.failed(error)
            _log.log(
                level, "still trying after %d attempts: %s", self._failures.count, _named(error)
            )

    def has_had_enough_of(self, error: RetriableError) -> bool:
        """Count an error that no time heals; returns whether the call is to raise it now."""
        self._unhealed += isinstance(error, UNHEALED)
        return isinstance(error, UNHEALED) and self._unhealed >= UNHEALED_MAX


async def pause_before_repeat(pauses: Pauses, deadline: Deadline, error: RetriableError) -> None:
    """Wait before the next attempt, or raise now if it would come too late or cannot help."""
    if pauses.has_had_enough_of(error):
        raise error
    pause_ms = next(pauses)
    if isinstance(error, ConcurrentTransactionsError):
        pause_ms = min(pause_ms, CONCURRENT_TRANSACTIONS_BACKOFF_MS)
    if pause_ms >= deadline.remaining_ms():
        raise out_of_time(error) from error
    pauses.warn_of(error)
    await asyncio.sleep(pause_ms / 1000)
    if deadline.passed:  # A busy loop wakes late.
        raise out_of_time(error) from error


def out_of_time(error: RetriableError) -> RetriableError:
    """Return what to raise when a retriable error can no longer be retried."""
    if isinstance(error, (UnknownTopicOrPartitionError, RequestTimedOutError, *UNHEALED)):
        return type(error)(error.message, **error.details)
    return RequestTimedOutError(f"not done in time: {_named(error)}", **error.details)


def _named(error: RetriableError) -> str:
    address = error.details.get(ADDRESS)
    return named(error, address) if address else error.message
