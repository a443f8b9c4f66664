"""How much each user may use, as plain values. Pure."""

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from semel_common.errors import InvalidRequestError

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_RATE = "request_rate"
LIMITS = {
    PRODUCER_BYTE_RATE: "bytes per second that come with requests",
    CONSUMER_BYTE_RATE: "bytes per second that go out with answers",
    REQUEST_RATE: "requests per second",
}
"""What can be limited; each of it at every service instance by itself."""
MINIMA = {PRODUCER_BYTE_RATE: 1_024.0, CONSUMER_BYTE_RATE: 1_024.0, REQUEST_RATE: 1.0}
"""The lowest value of each limit: a user that has it waits, but is not locked out."""
DEFAULT_USER = ""
"""Every user without limits of its own."""
_LIMIT_MAX = float(1 << 50)


class ClientQuota(Struct, frozen=True, kw_only=True, order=True):
    """The limits of one user."""

    user: str
    limits: tuple[tuple[str, float], ...] = ()
    """By name."""


def altered(
    quota: ClientQuota, *, set_: Mapping[str, float], remove: Iterable[str] = ()
) -> ClientQuota:
    """Return other limits of a user; raises InvalidRequestError naming what cannot be."""
    limits = dict(quota.limits)
    for name in remove:
        _check_name(name)
        if name in set_:
            raise InvalidRequestError(f"{name} is both set and removed", field="remove")
        limits.pop(name, None)
    for name, value in set_.items():
        _check_name(name)
        if not MINIMA[name] <= value <= _LIMIT_MAX:
            raise InvalidRequestError(
                f"{name} is {value}: must be {MINIMA[name]:g} to {_LIMIT_MAX:g} {LIMITS[name]}",
                field="set",
            )
        limits[name] = value
    return replace(quota, limits=tuple(sorted(limits.items())))


def enforced(quota: ClientQuota) -> dict[str, float]:
    """Return the limits of a user as they are enforced, by name.

    Metadata of earlier releases may hold any number: one outside of the bounds counts as the bound,
    one that is no number does not count, and neither does a limit that this release does not know.
    """
    return {
        name: min(max(value, MINIMA[name]), _LIMIT_MAX)
        for name, value in quota.limits
        if name in LIMITS and not math.isnan(value)
    }


def _check_name(name: str) -> None:
    if name not in LIMITS:
        raise InvalidRequestError(
            f"nothing is limited by the name {name[:60]!r}: there are {', '.join(LIMITS)}",
            field="limits",
        )
