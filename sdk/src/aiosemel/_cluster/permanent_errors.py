"""Errors that no time heals: a repeat may help, but many repeats do not."""

from aiosemel.errors import InvalidResponseError, SemelError, SslAuthenticationError

UNHEALED = (InvalidResponseError, SslAuthenticationError)
"""A repeat may reach another instance, or one that was just replaced. So requests are sent again,
but not until their deadline."""
UNHEALED_MAX = 3
"""How many such errors in a row a call takes before it raises the last one."""


class Unhealed:
    """The errors of a task behind a user's calls: which of them the next call raises."""

    def __init__(self) -> None:
        self._count = 0
        self._last: SemelError | None = None

    def failed(self, error: SemelError) -> None:
        """Count an error; any other than one that no time heals ends the row."""
        is_unhealed = isinstance(error, UNHEALED)
        self._count = self._count + 1 if is_unhealed else 0
        self._last = error if self._count >= UNHEALED_MAX else None

    def succeeded(self) -> None:
        """End the row."""
        self._count = 0
        self._last = None

    def take(self) -> SemelError | None:
        """Return the error to raise now, and begin the row again; None: there is none."""
        if self._last is None:
            return None
        error = self._last.again()
        self.succeeded()
        return error
