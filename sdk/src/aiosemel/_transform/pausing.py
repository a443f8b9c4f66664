"""The pauses of a transformation between attempts, which grow, and which a stop ends."""

from collections.abc import Iterator
from random import Random

from aiosemel._cluster.retry import growing_pauses_ms
from aiosemel._shared.change_signal import Signal
from aiosemel._transform.types import TransformOptions

_JITTER = 0.2


class Pausing:
    """The pauses of one loop."""

    def __init__(self, options: TransformOptions, random: Random) -> None:
        self._options = options
        self._random = random
        self._pauses: Iterator[float] | None = None
        self._stopped = Signal()
        self.stopping = False
        """Whether ``stop`` was called."""

    def stop(self) -> None:
        """End the present pause, and make no more."""
        self.stopping = True
        self._stopped.notify()

    def succeeded(self) -> None:
        """Begin with a short pause again."""
        self._pauses = None

    async def pause(self) -> None:
        """Wait a little longer than the last time, or until ``stop``."""
        if self._pauses is None:
            options = self._options
            self._pauses = growing_pauses_ms(options.retry_backoff_ms, options.retry_backoff_max_ms)
        jitter = self._random.uniform(1 - _JITTER, 1 + _JITTER)
        if not self.stopping:
            await self._stopped.wait(next(self._pauses) * jitter)
