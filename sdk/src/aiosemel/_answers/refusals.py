"""The errors that an answer has for some of its results."""

from collections.abc import Iterable

from aiosemel._answers.fields import Refusable
from semel_common.wire import status


def raise_refusal(results: Iterable[Refusable]) -> None:
    """Raise the error of the first result that has one."""
    for result in results:
        if result.HasField("error"):
            raise status.from_value(result.error)
