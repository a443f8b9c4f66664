"""What options have in common: whole numbers with a minimum, and some that must not cross."""

from collections.abc import Collection
from dataclasses import fields
from typing import TYPE_CHECKING

from aiosemel.errors import InvalidConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def check_integers(options: "DataclassInstance", *, may_be_zero: Collection[str] = ()) -> None:
    """Refuse a number that is not whole, or less than 1, or less than 0 where that is allowed."""
    for option in fields(options):
        if option.type is not int:
            continue
        value = getattr(options, option.name)
        if type(value) is not int:
            raise InvalidConfigError(f"{option.name} is {value!r}, not a whole number")
        minimum = 0 if option.name in may_be_zero else 1
        if value < minimum:
            raise InvalidConfigError(f"{option.name} is {value}, less than {minimum}")


def check_order(options: "DataclassInstance", lower: str, upper: str) -> None:
    """Refuse an upper bound that is below the lower one."""
    low, high = getattr(options, lower), getattr(options, upper)
    if low > high:
        raise InvalidConfigError(f"{upper} is {high}, less than {lower}, which is {low}")
