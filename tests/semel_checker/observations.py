"""The events of a history beside operations: the run, assignments, faults, and the final state."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from semel_checker.names import AbortReason, Partition, TransactionState, Writer
from semel_checker.operations import GroupOffset, PolledRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The first event: the name of the run, and its limits."""

    name: str
    """Says how to run it again: the seed of a simulation, the command of a chaos run."""
    transaction_timeout_ms: int
    """The longest that any client of the run may ask for."""
    slack_ms: int
    """How much later than its time-out a transaction may end, while no fault is active."""
    progress_ms: int | None = None
    """Within which each partition takes a transaction after `FaultsOver`; None: not checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMade:
    """A topic that the run writes to. One that is not declared is neither compacted nor cut."""

    topic: str
    partitions: int
    compacted: bool = False
    retention: bool = False
    """Old records may go by time or size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A member of a group learned its partitions: all of them, not a difference."""

    consumer: str
    group: str
    member: str
    member_epoch: int
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Positioned:
    """A consumer was put somewhere, by a seek or after an abort. None: where is not known."""

    consumer: str
    positions: tuple[GroupOffset, ...]


class FaultKind(StrEnum):
    """The kinds of faults of a cluster."""

    KILL = "KILL"
    POWER_LOSS = "POWER_LOSS"
    """A kill that loses all bytes that were not synced."""
    PAUSE = "PAUSE"
    RESTART = "RESTART"
    CLIENT_KILL = "CLIENT_KILL"
    CUT = "CUT"
    SLOW = "SLOW"
    DROP_REPLY = "DROP_REPLY"
    DUPLICATE = "DUPLICATE"
    REORDER = "REORDER"
    CLOCK_SKEW = "CLOCK_SKEW"
    DISK_FULL = "DISK_FULL"
    SYNC_ERROR = "SYNC_ERROR"
    SLOW_SYNC = "SLOW_SYNC"
    CORRUPTION = "CORRUPTION"
    """Stored bytes were changed or cut off."""
    ROLLED_BACK = "ROLLED_BACK"
    """Stored bytes were replaced by an older state of the same."""
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultInjected:
    """A fault begins; one that takes no time ends with itself."""

    fault: int
    kind: FaultKind
    target: str
    lasting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEnded:
    """A lasting fault is over; a corrupted file was put right by the operator."""

    fault: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DamageReported:
    """An instance refused to serve from files that do not hold together."""

    fault: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultsOver:
    """No fault is active and none follows; the run now writes to every partition once more."""


# --- The final state -----------------------------------------------------------------------------


class StoredRecord(NamedTuple):
    """A record of the log, whether visible or not."""

    offset: int
    value: str
    writer: Writer | None = None
    """None where the recorder cannot tell."""


class StoredMarker(NamedTuple):
    """A control batch."""

    offset: int
    writer: Writer
    commit: bool


class AbortedRange(NamedTuple):
    """An entry of the aborted-transaction index: [first offset, marker offset]."""

    writer: Writer
    first_offset: int
    marker_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalPartition:
    """A partition, read from its start to its end under both isolation levels, and its insides."""

    partition: Partition
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    committed: tuple[PolledRecord, ...]
    uncommitted: tuple[StoredRecord, ...] | None = None
    """None, as the two below: the recorder did not look."""
    markers: tuple[StoredMarker, ...] | None = None
    aborted: tuple[AbortedRange, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalGroup:
    """A group's offsets, and the writers with pending offsets."""

    group: str
    offsets: tuple[GroupOffset, ...]
    pending: tuple[Writer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalTransaction:
    """The state of a transaction in its coordinator's journal."""

    writer: Writer
    state: TransactionState
    reason: AbortReason | None = None
    partitions: tuple[Partition, ...] = ()
    """The participants that commit, or got an ABORT marker."""
    groups: tuple[str, ...] = ()


Observation = (
    RunStarted
    | TopicMade
    | Assigned
    | Positioned
    | FaultInjected
    | FaultEnded
    | DamageReported
    | FaultsOver
    | FinalPartition
    | FinalGroup
    | FinalTransaction
)
