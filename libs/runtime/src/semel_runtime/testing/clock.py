"""A clock that a test moves."""


class ManualClock:
    """Stands still until it is advanced. Implements ``Clock``."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        """Start at ``now_ms``, milliseconds since 1970-01-01 UTC."""
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Return the time that was set last."""
        return self._now_ms

    def advance(self, duration_ms: int) -> None:
        """Move on, or back."""
        self._now_ms += duration_ms
