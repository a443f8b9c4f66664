"""What the groups of one instance may hold, and when they ask about open transactions."""

from dataclasses import dataclass, field

from semel_runtime.participant.inquiry import InquiryTimes


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
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    """How long an offset is kept once its group does not read the topic any more."""
    producer_expiration_ms: int = 86_400_000
    """How long a producer is remembered after its last transaction, in milliseconds."""
    inquiry: InquiryTimes = field(default_factory=InquiryTimes)
    """When an open transaction is asked about."""
