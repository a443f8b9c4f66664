"""Why a consumer group sees no records of a partition: the first cause that holds."""

from dataclasses import dataclass
from enum import StrEnum

from aiosemel.types.offsets import TopicPartition
from aiosemel.types.transaction_outcomes import KnownOutcome


class ReaderCause(StrEnum):
    """Why a group sees no new record of a partition, in the order of the search."""

    NO_TOPIC = "NO_TOPIC"
    NO_PARTITION = "NO_PARTITION"
    NO_GROUP = "NO_GROUP"
    PARTITION_AWAY = "PARTITION_AWAY"
    """The broker that leads it does not answer, or the partition moves."""
    NO_MEMBER = "NO_MEMBER"
    """The group has no members."""
    NOT_SUBSCRIBED = "NOT_SUBSCRIBED"
    """No member reads the topic."""
    NOT_HELD = "NOT_HELD"
    """No member holds the partition now: it is on its way from one to another."""
    MEMBER_AWAY = "MEMBER_AWAY"
    """A static member holds it, is away, and may come back."""
    BELOW_LOG_START = "BELOW_LOG_START"
    """The records at the group's offset are deleted."""
    PAST_END = "PAST_END"
    """The group's offset is behind the end of the log."""
    OFFSETS_PENDING = "OFFSETS_PENDING"
    """An open transaction holds newer offsets of the group."""
    NOT_POLLED = "NOT_POLLED"
    """There are records to read, and the member has not polled for a time: it is busy, or stuck."""
    UNREAD = "UNREAD"
    """There are records to read: the member has them before it, or has not committed them."""
    OPEN_TRANSACTION = "OPEN_TRANSACTION"
    """An open transaction holds the last stable offset, and with it the group."""
    ABORTED_ONLY = "ABORTED_ONLY"
    """Behind the group's offset lie markers and aborted records only."""
    ALL_READ = "ALL_READ"
    """The group has read everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingTransaction:
    """The open transaction that a group waits for."""

    producer_id: int
    producer_epoch: int
    start_time_ms: int
    """When its first write came, in milliseconds since 1970-01-01 UTC."""
    age_ms: int | None
    """By the clock of the participant; None: not known."""
    transactional_id: str
    """Empty: not known."""
    outcome: KnownOutcome | None
    """As its coordinator says; None: it does not know, or does not answer."""
    time_left_ms: int | None
    """Until it times out; None: it is not ongoing."""
    client: str
    """The program that has the transactional id; empty: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderStanding:
    """Where a group stands in a partition, and the first cause why it sees no new record."""

    group_id: str
    partition: TopicPartition
    cause: ReaderCause
    member_id: str = ""
    """Of the member that holds the partition; empty: none."""
    poll_age_ms: int | None = None
    """How long ago that member last polled, in milliseconds; None: not known."""
    committed_offset: int | None = None
    """None: the group has committed none, and begins where its consumers say."""
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    high_watermark: int | None = None
    lag: int | None = None
    """Visible records that the group has yet to read."""
    records_held: int = 0
    """Offsets between the last stable one and the end: no committed reader sees them yet."""
    holder: HoldingTransaction | None = None
    """With OPEN_TRANSACTION and OFFSETS_PENDING."""
    problem: str = ""
    """With PARTITION_AWAY: the error that was answered."""
