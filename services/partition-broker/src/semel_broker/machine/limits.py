"""What one partition may hold, and when it asks about its open transactions."""

from dataclasses import dataclass, field

from semel_runtime.participant.inquiry import InquiryTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """Limits and intervals of every partition's log."""

    producers_max: int = 1_000_000
    """Producer ids that one partition remembers; past it, new ones are refused."""
    open_transactions_max: int = 100_000
    """Transactions that may be open in one partition; past it, new ones are refused."""
    open_epochs_max: int = 192
    """Transactions of one producer that may be open in one partition: the coordinator lets 64 wait
    for their markers and 64 be prepared, so more come only from a client that makes epochs up."""
    message_max_bytes: int = 1_048_588
    """The largest payload of a batch, unless its topic says something else."""
    producer_expiration_ms: int = 86_400_000
    """How long a producer is remembered after it was last heard of, in milliseconds."""
    inquiry: InquiryTimes = field(default_factory=InquiryTimes)
    """When an open transaction is asked about."""
