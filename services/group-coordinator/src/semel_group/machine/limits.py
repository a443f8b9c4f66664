"""What the groups of one instance may hold, and when they ask about open transactions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Limits and intervals of all groups. Past a limit, new things are refused, nothing is lost."""

    groups_max: int = 100_000
    """Groups on one instance: of those with members, and of those with offsets."""
    group_size_max: int = 1_000
    """Members of one group."""
    offsets_max: int = 100_000
    """Partitions in which one group, or one of its transactions, may have a position."""
    producers_max: int = 1_000_000
    """Producer ids that one group remembers."""
    pending_transactions_max: int = 100_000
    """Transactions without an outcome, in one group."""
    offset_metadata_max_bytes: int = 4_096
    """Bytes of an offset's metadata, in UTF-8."""
    transaction_inquiry_interval_ms: int = 10_000
    """How long a transaction is open before its coordinator is asked about it."""
    superseded_inquiry_delay_ms: int = 100
    """The same, from when offsets of a newer epoch came. A marker usually arrives in between: it
    and the next transaction's first offsets are on their way at the same time."""
