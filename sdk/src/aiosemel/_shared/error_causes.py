"""The chain of errors behind an error."""

from collections.abc import Iterator


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and the errors that caused it."""
    at: BaseException | None = error
    while at is not None:
        yield at
        at = at.__cause__
