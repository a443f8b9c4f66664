"""What one partition may hold, and when it asks about its open transactions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """Limits and intervals of every partition's log."""

    producers_max: int = 1_000_000
    """Producer ids that one partition remembers; past it, new ones are refused."""
    open_transactions_max: int = 100_000
    """Transactions that may be open in one partition; past it, new ones are refused."""
    open_epochs_max: int = 128
    """Transactions of one producer that may be open in one partition: the coordinator lets 64 wait
    for their markers, so more come only from a client that makes epochs up."""
    transaction_inquiry_interval_ms: int = 10_000
    """How long a transaction is open before its coordinator is asked about it."""
    superseded_inquiry_delay_ms: int = 100
    """The same, from when a newer epoch of its producer was seen. The marker usually arrives in
    between: it and the next transaction's first batch are on their way at the same time."""
