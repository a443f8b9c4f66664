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
DEFAULT_USER = ""
"""Everybody who has no limits of their own."""
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
        if not math.isfinite(value) or not 0 < value <= _LIMIT_MAX:
            raise InvalidRequestError(
                f"{name} is {value}: must be more than 0, and at most {_LIMIT_MAX:g}", field="set"
            )
        limits[name] = value
    return replace(quota, limits=tuple(sorted(limits.items())))


def _check_name(name: str) -> None:
    if name not in LIMITS:
        raise InvalidRequestError(
            f"nothing is limited by the name {name[:60]!r}: there are {', '.join(LIMITS)}",
            field="limits",
        )
