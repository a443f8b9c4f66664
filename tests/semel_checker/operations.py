"""The operations of clients, and their results."""

from dataclasses import dataclass
from typing import NamedTuple

from semel_checker.names import (
    AbortReason,
    Isolation,
    Joint,
    Partition,
    Source,
    TransactionState,
    Writer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducer:
    """InitProducerId of a transactional id; returns `Initialized`."""

    transactional_id: str
    keep_prepared: bool = False
    wait_complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialized:
    """The new epoch, and the transactions that are still prepared."""

    writer: Writer
    prepared: tuple[Writer, ...] = ()


class SentRecord(NamedTuple):
    """A record to send."""

    value: str
    """Unique in the history. A tombstone carries it in a header."""
    key: str | None = None
    tombstone: bool = False
    source: Source | None = None
    """Given by a workload that derives exactly one record from each record it consumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Records of one writer for one partition, stored together; returns `Sent`.

    Sends of a writer to a partition are stored in the order in which they were invoked.
    """

    writer: Writer
    partition: Partition
    records: tuple[SentRecord, ...]
    transactional: bool = True
    expected_base_offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Where the first record is; the others follow it."""

    base_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """A consumer takes records; returns `Polled`."""

    consumer: str
    """Unique for each consumer object."""
    isolation: Isolation
    transaction: Writer | None = None
    """The transaction that consumes the polled records, where it is known already."""


class PolledRecord(NamedTuple):
    """A record as it was read."""

    offset: int
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRead:
    """The records that one poll got of one partition."""

    partition: Partition
    position: int | None
    """The consumer's position before; None where the recorder cannot tell."""
    next_position: int | None
    """Its position after, past all that was taken and left out; None where unknown."""
    records: tuple[PolledRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """The records of a poll: partitions without records too, if their positions moved."""

    reads: tuple[PartitionRead, ...]


class OffsetCommit(NamedTuple):
    """The offset that a group goes on from in a partition."""

    partition: Partition
    offset: int
    consumed_from: int | None = None
    """The first offset of the consumed records: [consumed_from, offset). None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOffsets:
    """Offsets of a group, in a transaction or (no writer) outside of any; returns nothing."""

    group: str
    offsets: tuple[OffsetCommit, ...]
    writer: Writer | None = None
    member: str = ""
    member_epoch: int = -1
    reset: bool = False
    """An operator moves or deletes the offsets (-1): exactly-once ends there for the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOffsets:
    """Ask for a group's offsets; returns `OffsetsFetched`."""

    group: str
    partitions: tuple[Partition, ...]
    require_stable: bool = True


class GroupOffset(NamedTuple):
    """A committed offset; None: the group has none."""

    partition: Partition
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsFetched:
    """The partitions that were answered."""

    offsets: tuple[GroupOffset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    """EndTxn, or CompletePreparedTxn by a successor; returns nothing.

    A commit that is `FAILED` is a transaction that is aborted for good.
    """

    writer: Writer
    commit: bool
    successor: Writer | None = None
    """The writer that completes a prepared transaction of another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareTransaction:
    """PrepareTxn; returns nothing."""

    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOutcome:
    """GetTransactionOutcome; returns `OutcomeTold`."""

    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTold:
    """The coordinator's answer about a transaction."""

    state: TransactionState
    reason: AbortReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTransaction:
    """JoinTxn; returns `Joined`."""

    joint: Joint
    owner: str
    writer_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The writer of a joiner, or that the version is committed already."""

    writer: Writer | None
    already_committed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndJoint:
    """EndJointTxn: the named writers' records commit, all others abort; returns `JointEnded`.

    `FAILED`: this run's transaction is aborted.
    """

    joint: Joint
    owner: str
    commit: bool
    writers: tuple[Writer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JointEnded:
    """Whether the version was committed before, by another call than this one or its repeats."""

    already_committed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndByOperator:
    """FenceProducer or AbortTransaction by an operator; returns nothing."""

    writer: Writer | None
    transactional_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecords:
    """Delete the records below an offset; returns nothing."""

    partition: Partition
    before_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLog:
    """Ask a partition for its state; returns `LogProbed`."""

    partition: Partition


class OpenTransaction(NamedTuple):
    """A transaction that holds a partition's last stable offset back."""

    writer: Writer
    first_offset: int
    age_ms: int
    prepared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogProbed:
    """A partition's offsets, and its open transactions if the recorder can see them."""

    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    open_transactions: tuple[OpenTransaction, ...] = ()


Operation = (
    InitProducer
    | Send
    | Poll
    | CommitOffsets
    | FetchOffsets
    | EndTransaction
    | PrepareTransaction
    | AskOutcome
    | JoinTransaction
    | EndJoint
    | EndByOperator
    | DeleteRecords
    | ProbeLog
)
Result = (
    Initialized | Sent | Polled | OffsetsFetched | OutcomeTold | Joined | JointEnded | LogProbed
)
