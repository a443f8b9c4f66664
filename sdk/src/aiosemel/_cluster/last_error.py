"""The last error of a client's calls, as long as its address has not answered: time-outs name it.

A call ends by a time-out when all its attempts have failed, and what failed may be another call:
records wait for a producer id, a flush waits for a broker.
"""

from aiosemel.errors import RequestTimedOutError, SemelError


def named(error: SemelError, address: str) -> str:
    """Return the text of an error, with the address that it came from."""
    return error.message if address in error.message else f"{address}: {error.message}"


class Trouble:
    """The present trouble of one client."""

    def __init__(self) -> None:
        self._address: str | None = None
        self._text = ""

    def failed(self, error: SemelError, address: str) -> None:
        """Keep an error in mind until its address answers."""
        self._address = address
        self._text = named(error, address)

    def answered(self, address: str) -> None:
        """Know that a call to an address was answered without an error."""
        if self._address == address:
            self._address = None
            self._text = ""

    @property
    def suffix(self) -> str:
        """The end of a time-out's text; empty without trouble."""
        return with_last_error(self._text)


def not_in_time(what: str, cause: SemelError | None) -> RequestTimedOutError:
    """Return the error for something that was not found before a deadline."""
    because = "" if cause is None else with_last_error(cause.message)
    late = RequestTimedOutError(f"{what} was not found in time{because}")
    late.__cause__ = cause
    return late


def with_last_error(text: str) -> str:
    """Return how a time-out ends that has this last error; empty for none."""
    return f"; last error: {text}" if text else ""
