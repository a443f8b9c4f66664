"""A clock that a test moves."""


class ManualClock:
    """Stands still until it is advanced. Implements ``Clock``."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        """Start at ``now_ms``, milliseconds since 1970-01-01 UTC."""
        self._now_ms = now_ms
        self.jumps = 0
        """See ``Clock.jumps``: how often it jumped; to be advanced is to let time pass."""

    def now_ms(self) -> int:
        """Return the time that was set last."""
        return self._now_ms

    def advance(self, duration_ms: int) -> None:
        """Move on, or back."""
        self._now_ms += duration_ms

    def jump(self, duration_ms: int) -> None:
        """Jump on, or back, and be seen to."""
        self.advance(duration_ms)
        self.jumps += 1
