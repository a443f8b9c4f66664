"""Quotas: how much each user may ask of this instance, by token buckets that may run into debt.

A request never waits here. The service answers it, takes its costs from the user's buckets, and
says in ``throttle_time_ms`` when the buckets are full enough again. A client that waits so long is
never refused. A client that does not wait gets deeper into debt; past the hard limit, the service
refuses its requests before any work: THROTTLING_QUOTA_EXCEEDED. Other users wait for none of this.
(ADR ``quotas-answer-first``.)

No answer and no refusal names a wait longer than ``QuotaTimes.wait_max_ms``, whatever the rate and
however large the request: debt past that is forgiven. Calls of ``NEVER_THROTTLED`` are never
refused, and told of no wait.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.message import Message

from semel_common.errors import ThrottlingQuotaExceededError
from semel_common.wire.methods import NEVER_THROTTLED
from semel_runtime.access.client_quotas import (
    CONSUMER_BYTE_RATE,
    DEFAULT_USER,
    PRODUCER_BYTE_RATE,
    REQUEST_RATE,
    ClientQuota,
    enforced,
)
from semel_runtime.authentication.principal import Principal

USERS_MAX = 10_000
"""Users that are remembered; past it, every user begins with full buckets."""
_THROTTLE_TIME = "throttle_time_ms"

Now = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaTimes:
    """For how long a user may go over a rate."""

    window_ms: int = 1_000
    """As much as a rate gives in this time may be used at once."""
    debt_max_ms: int = 10_000
    """How long a user's debt may take to be paid; past it, requests are refused."""

    @property
    def wait_max_ms(self) -> int:
        """The longest wait that a user is told of."""
        return 2 * self.debt_max_ms


class Bucket:
    """One rate of one user."""

    __slots__ = ("_level", "_max", "_min", "_rate", "_updated_at")

    def __init__(self, rate: float, *, times: QuotaTimes, now: float) -> None:
        """Begin full."""
        self._rate = rate
        self._max = rate * times.window_ms / 1000
        self._min = -rate * times.wait_max_ms / 1000
        self._level = self._max
        self._updated_at = now

    def take(self, amount: float, now: float) -> None:
        """Take an amount, even if it is not there; debt past the longest wait is forgiven."""
        self._fill(now)
        self._level = max(self._min, self._level - amount)

    def debt_ms(self, now: float) -> float:
        """Return how long it takes until there is no debt any more."""
        self._fill(now)
        return max(0.0, -self._level / self._rate * 1000)

    def _fill(self, now: float) -> None:
        self._level = min(self._max, self._level + (now - self._updated_at) * self._rate)
        self._updated_at = now


class Quotas:
    """The buckets of one instance."""

    def __init__(self, times: QuotaTimes, now: Now | None = None) -> None:
        """Limit no user yet; time is the event loop's."""
        self._times = times
        self._now = now or (lambda: asyncio.get_running_loop().time())
        self._quotas: tuple[ClientQuota, ...] = ()
        self._limits: dict[str, dict[str, float]] = {}
        self._buckets: dict[str, dict[str, Bucket]] = {}

    def update(self, quotas: tuple[ClientQuota, ...]) -> None:
        """Take other limits; a user with unchanged limits keeps its buckets."""
        if quotas == self._quotas:
            return
        before, self._quotas = self._limits, quotas
        self._limits = {quota.user: enforced(quota) for quota in quotas}
        self._buckets = {
            user: buckets
            for user, buckets in self._buckets.items()
            if _limits_in(before, user) == _limits_in(self._limits, user)
        }

    def admit(self, principal: Principal, path: str, request: Message) -> None:
        """Take the costs of a request.

        Raises ThrottlingQuotaExceededError past the hard limit, but never for what ``path`` lets
        through.
        """
        buckets = self._of(principal.name)
        if not buckets:
            return
        now = self._now()
        debt_ms = _debt_ms(buckets, now)
        if debt_ms > self._times.debt_max_ms and path not in NEVER_THROTTLED:
            raise ThrottlingQuotaExceededError(
                f"{principal} is over its quota by {debt_ms:.0f} ms,"
                f" more than {self._times.debt_max_ms} ms: nothing was done",
                throttle_time_ms=int(debt_ms) + 1,
            )
        if (requests := buckets.get(REQUEST_RATE)) is not None:
            requests.take(1, now)
        if (produced := buckets.get(PRODUCER_BYTE_RATE)) is not None:
            produced.take(request.ByteSize(), now)

    def charge(self, principal: Principal, path: str, response: Message | None) -> None:
        """Take the costs of an answer, and let it say how long to wait."""
        buckets = self._of(principal.name)
        if not buckets or response is None:
            return
        now = self._now()
        if (consumed := buckets.get(CONSUMER_BYTE_RATE)) is not None:
            consumed.take(response.ByteSize(), now)
        if path in NEVER_THROTTLED:
            return
        debt_ms = _debt_ms(buckets, now)
        if debt_ms > 0 and _THROTTLE_TIME in response.DESCRIPTOR.fields_by_name:
            response.throttle_time_ms = int(debt_ms) + 1  # type: ignore[attr-defined]  # asked just now

    def _of(self, user: str) -> dict[str, Bucket]:
        """Return a user's buckets; none if the user has no limits."""
        if not self._limits:
            return {}
        found = self._buckets.get(user)
        if found is None:
            if len(self._buckets) >= USERS_MAX:
                self._buckets = {}
            now = self._now()
            found = self._buckets[user] = {
                name: Bucket(rate, times=self._times, now=now)
                for name, rate in _limits_in(self._limits, user).items()
            }
        return found


def _limits_in(limits: dict[str, dict[str, float]], user: str) -> dict[str, float]:
    own = limits.get(user)
    return limits.get(DEFAULT_USER, {}) if own is None else own


def _debt_ms(buckets: dict[str, Bucket], now: float) -> float:
    return max(bucket.debt_ms(now) for bucket in buckets.values())
