"""Rows of failures: their number, the last error, and the level at which each is logged."""

import asyncio
import logging

from aiosemel.errors import SemelError
from aiosemel.types.offsets import TopicPartition

WARN_AGAIN_MS = 10_000
"""The pause between two warnings of one row."""


class Failures:
    """The failures since something last succeeded."""

    def __init__(self, *, quiet_ms: float = 0) -> None:
        """``quiet_ms`` is how long a row may last, as after a move, before it is warned of."""
        self._quiet_s = quiet_ms / 1000
        self._warn_at: float | None = None
        self.count = 0
        """How many are in the row."""
        self.last: SemelError | None = None
        """None: there is no row."""

    def failed(self, error: SemelError) -> int:
        """Take one more; return the level to log it at."""
        now = asyncio.get_running_loop().time()
        self.last = error
        self.count += 1
        if self._warn_at is None:
            self._warn_at = now + self._quiet_s
        if now < self._warn_at:
            return logging.DEBUG
        self._warn_at = now + WARN_AGAIN_MS / 1000
        return logging.WARNING

    def succeeded(self) -> None:
        """End the row."""
        self._warn_at = self.last = None
        self.count = 0


def named(error: SemelError, of: TopicPartition) -> SemelError:
    """Return an error that says of which partition it is: its broker knows a topic's id alone."""
    details = error.details | {"topic": of.topic, "partition": str(of.partition)}
    return type(error)(f"{of}: {error.message}", **details)
