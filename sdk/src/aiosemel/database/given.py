"""Checks of the values that a program gives to a layer, made with the layer."""

from typing import TypeVar

T = TypeVar("T")


def of_class(given: T, *classes: type) -> T:
    """Return an object of one of the classes; raises TypeError, which names both."""
    if not isinstance(given, classes):
        wanted = " or ".join(each.__name__ for each in classes)
        raise TypeError(f"the database must be made of {wanted}, not {type(given).__name__}")
    return given
