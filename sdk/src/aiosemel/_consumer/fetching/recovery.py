"""The recovery from errors: a pause, one log line, and a look for the instance in charge."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator

from aiosemel._cluster.failures import WARN_AGAIN_MS, Failures
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import (
    RefreshRetriableError,
    RetriableError,
    SemelError,
    UnknownServerError,
)
from semel_common.library_log import get_logger

AGAIN = (RetriableError, UnknownServerError)
"""Errors that another attempt may heal. The client cannot repair a failure inside a server, so it
asks until the server answers, as Kafka's consumer does.
"""

_log = get_logger(__name__)


class Recovery:
    """The failures of one consumer's requests, by the target: an address, or a kind of question."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pauses: dict[str, Iterator[float]] = {}
        self._failures: defaultdict[str, Failures] = defaultdict(
            lambda: Failures(quiet_ms=WARN_AGAIN_MS)
        )

    def deadline(self) -> Deadline:
        """Return the time of one request."""
        return Deadline.after_ms(self._cluster.options.default_api_timeout_ms)

    def last_errors(self, asked: Iterable[str]) -> Iterator[SemelError]:
        """Yield the last error of each, where nothing has succeeded since."""
        for each in asked:
            if (last := self._failures[each].last) is not None:
                yield last

    def failures_of(self, asked: str) -> int:
        """Return how many attempts have failed since the last success."""
        return self._failures[asked].count

    def failed(self, asked: str, error: SemelError) -> None:
        """Note, and log, that an attempt has failed."""
        level = self._failures[asked].failed(error)
        _log.log(level, "asking %s failed: %s", asked, error)

    async def recover(self, asked: str, error: SemelError) -> None:
        """Pause after an error, and look for the instance in charge if need be."""
        self.failed(asked, error)
        pauses = self._pauses.setdefault(asked, self._cluster.backoff())
        await asyncio.sleep(next(pauses) / 1000)
        if isinstance(error, (RefreshRetriableError, UnknownServerError)):
            with contextlib.suppress(SemelError):  # The next attempt meets that error again.
                await self._cluster.cache.refresh(self.deadline())

    def succeeded(self, asked: str) -> None:
        """Note that an attempt has succeeded."""
        self._pauses.pop(asked, None)
        self._failures[asked].succeeded()
