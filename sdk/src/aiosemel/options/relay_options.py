"""Options of the relay of an outbox: how much it sends at once, and how long it waits."""

from dataclasses import dataclass

from aiosemel.options.option_checks import check_order, check_values


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOptions:
    """How a relay works."""

    max_records: int = 500
    """How many records a transaction has at most."""
    poll_interval_ms: int = 200
    """How often to look for records, in milliseconds, while the outbox is empty."""
    lease_ms: int = 10_000
    """How long another relay waits for one that does not answer, in milliseconds."""
    retry_backoff_ms: int = 100
    """The pause after a failure, in milliseconds; doubled each time."""
    retry_backoff_max_ms: int = 5_000
    """The longest such pause, in milliseconds."""
    signal_grace_ms: int = 10_000
    """How long the transaction in hand may go on after a signal, in milliseconds."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with InvalidConfigError."""
        check_values(self, may_be_zero=("retry_backoff_ms", "signal_grace_ms"))
        check_order(self, "retry_backoff_ms", "retry_backoff_max_ms")
