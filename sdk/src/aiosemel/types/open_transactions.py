"""Transactions that stay open, as operators see them, and the results of operators' decisions."""

from dataclasses import dataclass

from aiosemel.types.offsets import TopicPartition
from aiosemel.types.transaction_outcomes import TransactionOutcomeDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction without an outcome at one participant, and its coordinator's view of it."""

    partition: TopicPartition | None
    """Of a topic that is gone, the name is its id. None: it is a group."""
    group_id: str | None
    producer_id: int
    producer_epoch: int
    start_time_ms: int
    """When its first write came, in milliseconds since 1970-01-01 UTC."""
    age_ms: int
    """By the clock of the participant."""
    first_offset: int | None
    """Of a partition: no committed reader sees anything from here on."""
    known: TransactionOutcomeDescription | None
    """None: the coordinator knows no such transaction, or cannot be asked."""
    problem: str
    """Why ``known`` is None, or empty."""
    coordinator_answered: bool = True
    """False: the coordinator may well know the transaction, and did not answer in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransactions:
    """The open transactions of the whole cluster, the oldest first."""

    transactions: tuple[OpenTransaction, ...]
    truncated: bool
    """Whether an instance has more."""
    unreachable: tuple[str, ...]
    """Instances that did not answer, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedByOperator:
    """The effect of an abort, or of its dry run."""

    participants: int
    """How many partitions and groups are known to have been written to."""
    already_aborted: bool
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedByOperator:
    """The producer that a fence has hit, or would hit."""

    producer_id: int
    fenced_epoch: int
    """No open transaction of this epoch, or of an older one, will ever commit."""
    participants: int
    """How many partitions and groups are told that a transaction was aborted."""
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEpoch:
    """A transaction of one producer that is open in one partition."""

    producer_epoch: int
    first_offset: int
    start_time_ms: int
    age_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerDescription:
    """The state of one producer in one partition."""

    producer_id: int
    producer_epoch: int | None
    """The highest that has written; None: none is known."""
    last_sequence: int | None
    last_timestamp_ms: int
    """When it was last heard of, in milliseconds since 1970-01-01 UTC."""
    fence: int
    """The lowest epoch that may still write."""
    open_transactions: tuple[OpenEpoch, ...]
    """The oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProducers:
    """One partition, and its producers."""

    partition: TopicPartition
    high_watermark: int
    last_stable_offset: int
    producers: tuple[ProducerDescription, ...]
    """Those with open transactions first; the first of all holds the last stable offset."""
    producer_count: int
    """How many the partition knows: more may be there than are described."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionWrites:
    """The records that one transaction has written to one partition, and its marker there."""

    partition: TopicPartition
    first_offset: int | None = None
    """Of its first record; None: it has none there, or retention has deleted it."""
    last_offset: int | None = None
    record_count: int = 0
    """How many records it wrote, also if compaction has removed some."""
    first_timestamp_ms: int | None = None
    """The newest timestamp in its first batch, in milliseconds since 1970-01-01 UTC."""
    marker_offset: int | None = None
    """None: the transaction is open there, or wrote nothing."""
