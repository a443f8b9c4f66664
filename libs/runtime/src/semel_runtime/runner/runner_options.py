"""Options of a runner, and its figures."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """Limits of one runner."""

    owner: str = "this instance"
    """Names the instance in errors."""
    pending_records_max: int = 100_000
    """Records that may wait for the disk; past it, decisions that append are refused."""
    pending_bytes_max: int = 64 * 1024 * 1024
    """Bytes of records and batches that may wait for the disk; past it, the same."""
    commit_bytes_max: int = 16 * 1024 * 1024
    """Bytes of decisions that share a journal append; one that is larger has its own."""
    decision_bytes_max: int = 64 * 1024 * 1024
    """The most that one decision may write: as much as the engines take in one append."""
    commit_batches_max: int = 1_024
    """Record batches in one journal append, so also the most that one decision may write."""
    linger_ms: int = 20
    """How long records without a waiter stay queued before they get a journal append of their own;
    an earlier append takes them along."""
    patience_ms: int = 2
    """The same for records whose caller has time, but waits."""
    snapshot_records_min: int = 50_000
    """Records after the last snapshot, at the least, before another one is taken."""
    read_bytes: int = 1024 * 1024
    """Size of the pieces in which the journal is read at start."""
    snapshot_piece_bytes: int = 64 * 1024
    """Size of the pieces in which a snapshot is written."""


class CommitFigures(NamedTuple):
    """What became durable together."""

    seconds: float
    """How long the journal took, with the way to its thread and back."""
    records: int
    size_bytes: int
    """Of records and batches."""
    write_seconds: float
    """How long the write itself took, with its fsync: the part of the time that is the disk's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerStats:
    """Figures since the start; for metrics."""

    commits: int
    records: int
    """Records that became durable."""
    batches: int
    """Record batches that became durable."""
    snapshots: int
    pending_records: int
    """Records that wait for the disk now."""
    pending_bytes: int
    """Bytes that wait for the disk now."""
    next_offset: int
    """Where the next record goes."""
