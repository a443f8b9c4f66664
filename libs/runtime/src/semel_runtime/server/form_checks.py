"""Checks of form at the edge: every message names the field and the value."""

from collections.abc import Sized

from semel_common.errors import InvalidRequestError

INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1
_SHOWN_MAX = 60


def require_int(field: str, value: int, *, minimum: int = 0, maximum: int = INT64_MAX) -> int:
    """Return ``value`` if it is in range."""
    if not minimum <= value <= maximum:
        raise InvalidRequestError(
            f"{field} is {value}: must be {minimum} to {maximum}", field=field
        )
    return value


def require_name(field: str, value: str, *, length_max: int = 255) -> str:
    """Return a name if it is neither empty nor too long."""
    if not value:
        raise InvalidRequestError(f"{field} is empty", field=field)
    if len(value) > length_max:
        raise InvalidRequestError(
            f"{field} {shown(value)!r} has {len(value)} characters: at most {length_max}",
            field=field,
        )
    return value


def require_count(field: str, items: Sized, *, maximum: int, minimum: int = 0) -> None:
    """Check how many items there are."""
    if not minimum <= len(items) <= maximum:
        raise InvalidRequestError(
            f"{field} has {len(items)} entries: must be {minimum} to {maximum}", field=field
        )


def require_known(field: str, value: int, known: tuple[int, ...]) -> int:
    """Return an enum's number if it is one of the known ones."""
    if value not in known:
        raise InvalidRequestError(f"{field} has the unknown value {value}", field=field)
    return value


def shown(text: str) -> str:
    """Cut a user's text to what fits into a message."""
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
