"""Answers about many partitions: a decision on one partition never fails those on others."""

from collections.abc import Callable
from typing import TypeVar

from semel_common.errors import SemelError

T = TypeVar("T")


def answer_of(decide: Callable[[], T]) -> T | SemelError:
    """Return the decision on one partition, or the reason for its refusal."""
    try:
        return decide()
    except SemelError as error:
        return error.as_value()
