"""Checks of all options: types and bounds of their values, and pairs that must not cross."""

import re
from collections.abc import Collection
from dataclasses import Field, fields
from enum import StrEnum
from typing import TYPE_CHECKING

from aiosemel._shared.name_checks import shown
from aiosemel._shared.value_checks import INT32_MAX, INT64_MAX, check_text
from aiosemel.errors import InvalidConfigError, InvalidRequestError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_CLIENT_ID = re.compile(r"[A-Za-z0-9._-]{0,64}")


def check_values(
    options: "DataclassInstance",
    *,
    may_be_zero: Collection[str] = (),
    in_requests: Collection[str] = (),
) -> None:
    """Refuse numbers, switches and texts of another type, or out of bounds.

    A number is at least 1, or 0 where that is allowed. ``in_requests`` are numbers for which
    requests have 32 bits.
    """
    for option in fields(options):
        value = getattr(options, option.name)
        if option.type is int:
            minimum = 0 if option.name in may_be_zero else 1
            maximum = INT32_MAX if option.name in in_requests else INT64_MAX
            _check_number(option.name, value, minimum, maximum)
        elif option.type is bool:
            _check_switch(option.name, value)
        elif option.type is str or (option.type == str | None and value is not None):
            _check_text(option, value)


def check_choice(name: str, value: object, allowed: type[StrEnum]) -> None:
    """Refuse a value that is no member of an enumeration."""
    if not isinstance(value, str) or value not in tuple(allowed):
        raise InvalidConfigError(f"{name} is {shown(value)}: {', '.join(allowed)}")


def check_client_id(value: str) -> None:
    """Refuse a name that could hide something where operators read it, or that is too long."""
    if not _CLIENT_ID.fullmatch(value):
        raise InvalidConfigError(
            f"client_id is {shown(value)}: up to 64 letters, digits, dots, hyphens and underscores"
        )


def check_order(options: "DataclassInstance", lower: str, upper: str) -> None:
    """Refuse an upper bound that is below the lower one."""
    low, high = getattr(options, lower), getattr(options, upper)
    if low > high:
        raise InvalidConfigError(f"{upper} is {high}, less than {lower}, which is {low}")


def _check_number(name: str, value: object, minimum: int, maximum: int) -> None:
    if type(value) is not int:
        raise InvalidConfigError(f"{name} is {shown(value)}, not a whole number")
    if value < minimum:
        raise InvalidConfigError(f"{name} is {shown(value)}, less than {minimum}")
    if value > maximum:
        raise InvalidConfigError(f"{name} is {shown(value)}, more than {maximum}")


def _check_switch(name: str, value: object) -> None:
    """Refuse a text, above all: ``"false"`` would count as true."""
    if type(value) is not bool:
        raise InvalidConfigError(f"{name} is {shown(value)}, neither True nor False")


def _check_text(option: "Field[object]", value: object) -> None:
    if not isinstance(value, str):
        raise InvalidConfigError(f"{option.name} is {shown(value)}, not a text")
    try:
        check_text(option.name, value, InvalidRequestError)
    except InvalidRequestError as error:
        raise InvalidConfigError(error.message) from None
