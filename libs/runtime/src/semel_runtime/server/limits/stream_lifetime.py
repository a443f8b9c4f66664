"""When a stream ends without a reason of its own: it is idle, or its caller's proof has run out."""

import asyncio
import time
from collections.abc import Callable

_LOOKS = 2
"""A stream that was not busy between so many looks, and not used, is idle: after its time, and at
most half of that later."""
_SLEEP_MAX_S = 86_400.0
"""Timers are set no further ahead: clocks of computers may be set meanwhile."""


class Lifetime:
    """Watches one stream. Made inside a running event loop."""

    def __init__(
        self,
        *,
        max_idle_ms: int,
        expires_at: float | None,
        is_busy: Callable[[], bool],
        idle: Callable[[], None],
        expired: Callable[[], None],
    ) -> None:
        """Begin to watch; ``expires_at`` is in seconds since 1970, None: never.

        ``idle`` is called when the stream was not busy for ``max_idle_ms``, ``expired`` when the
        proof has run out.
        """
        self._loop = asyncio.get_running_loop()
        self._look_s = max_idle_ms / 1000 / _LOOKS
        self._is_busy = is_busy
        self._idle = idle
        self._expired = expired
        self.used = True
        """Set for every message, so it is no more than an attribute."""
        self._looks_left = _LOOKS
        self._idle_timer = self._loop.call_later(self._look_s, self._look_if_idle)
        self._expiry_timer: asyncio.TimerHandle | None = None
        if expires_at is not None:
            self._look_if_expired(expires_at)

    def end(self) -> None:
        """Watch no more."""
        self._idle_timer.cancel()
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()

    def _look_if_idle(self) -> None:
        if self.used or self._is_busy():
            self.used = False
            self._looks_left = _LOOKS
        else:
            self._looks_left -= 1
        if self._looks_left:
            self._idle_timer = self._loop.call_later(self._look_s, self._look_if_idle)
        else:
            self._idle()

    def _look_if_expired(self, expires_at: float) -> None:
        left_s = expires_at - time.time()
        if left_s < 0:
            self._expired()
        else:
            # A proof is good up to the last moment: look just after it.
            after_s = min(left_s, _SLEEP_MAX_S) + 0.001
            self._expiry_timer = self._loop.call_later(after_s, self._look_if_expired, expires_at)
