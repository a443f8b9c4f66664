"""The facts that a broker's journal holds.

The first group is written as things happen; of the second, entities whole, snapshots are made. On
disk they are the messages of ``semel/broker/journal/v1``; the serde maps them.
"""

from typing import NamedTuple, TypeAlias

from msgspec import Struct

from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen

# -- as things happen ----------------------------------------------------------------------------


class BatchAppended(Struct, frozen=True, kw_only=True):
    """A batch of a client was given its offset."""

    log_id: int
    base_offset: int
    record_count: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    appended_ms: int
    size_bytes: int = 0
    """Of its payload."""
    begins_segment: bool = False
    crc32c: int | None = None
    """None without a producer id, and in journals of releases that did not know it."""


class MarkerAppended(Struct, frozen=True, kw_only=True):
    """A transaction that was open here got its outcome, and the marker its offset."""

    log_id: int
    offset: int
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    current_epoch: int | None
    """Set if the coordinator never gave ``producer_epoch`` out: the producer's current epoch."""
    appended_ms: int


class ProducerFenced(Struct, frozen=True, kw_only=True):
    """A marker came for a transaction that was not open here: only the fence rose."""

    log_id: int
    producer_id: int
    fence: int
    fenced_ms: int


class ProducerForgotten(Struct, frozen=True, kw_only=True):
    """A producer was idle for so long that nothing is known of it any more, not even its fence."""

    log_id: int
    producer_id: int


class OffsetRange(NamedTuple):
    """The offsets from a start to the one before an end."""

    start_offset: int
    end_offset: int


class LogStartMoved(Struct, frozen=True, kw_only=True):
    """What lies below ``log_start_offset`` is not served any more."""

    log_id: int
    log_start_offset: int


class LogEndMoved(Struct, frozen=True, kw_only=True):
    """The volume was an older copy: the next append is above all offsets that were ever given."""

    log_id: int
    log_end_offset: int


class LogCopied(Struct, frozen=True, kw_only=True):
    """A piece of a log that moves here was stored; nothing of it is served yet."""

    log_id: int
    log_end_offset: int
    """Where the copy ends now."""


class LogTakenOver(Struct, frozen=True, kw_only=True):
    """All that was known of a log is known no more: what its leader has handed over follows."""

    log_id: int
    log_start_offset: int
    log_end_offset: int
    gaps: tuple[OffsetRange, ...] = ()
    """As in ``LogState``."""


class LogCompacted(Struct, frozen=True, kw_only=True):
    """A pass of compaction over the log has come to its end; also an entity."""

    log_id: int
    upto: int
    """The offset behind what is compacted: nothing below was aborted."""
    records_left: int
    """How many records and markers lie below it."""
    size_bytes_left: int
    """About what they take in the store."""


class LogDropped(Struct, frozen=True, kw_only=True):
    """The topic was deleted, or the partition is led by another broker: the batches are to go."""

    log_id: int


class LogPurged(Struct, frozen=True, kw_only=True):
    """No batch of a dropped log is left."""

    log_id: int


# -- entities ------------------------------------------------------------------------------------


class LogState(Struct, frozen=True, kw_only=True):
    """One partition's log, as it is created, copied from its leader, handed over, or led here."""

    log_id: int
    """Names the log in the store; never given to another one."""
    topic_id: str
    topic: str
    partition: int
    leader_epoch: int
    leader_id: int
    log_start_offset: int
    log_end_offset: int
    handed_over: bool = False
    """It moves away, and is not served here any more."""
    taken_over: bool = False
    """It moves here, and all of it is here: only the controller does not know yet."""
    gaps: tuple[OffsetRange, ...] = ()
    """Where batches may be missing; see ``gaps.py``. They only become more."""
    gaps_known: bool = False
    """Whether ``gaps`` has all of them: an earlier release did not write them down."""


class AppendedBatch(NamedTuple):
    """What is remembered of a batch to know it when it comes again."""

    base_sequence: int
    record_count: int
    base_offset: int
    crc32c: int | None = None
    """None: it is not known, and a repeat needs no equal one."""


class ProducerState(Struct, frozen=True, kw_only=True):
    """What one log knows of one producer; see ``producer.py``."""

    log_id: int
    producer_id: int
    fence: int
    """The lowest epoch that may still append; only rises."""
    producer_epoch: int
    """The highest epoch of which a batch was appended; -1: none."""
    expected_sequence: int
    """What the next batch of ``producer_epoch`` must begin with."""
    batches: tuple[AppendedBatch, ...]
    """The last batches of ``producer_epoch``, the oldest first."""
    open_epochs: tuple[int, ...]
    """Those of its transactions that are open in this log."""
    last_timestamp_ms: int
    """When it was last heard of."""


class OpenTransaction(Struct, frozen=True, kw_only=True):
    """A transaction without an outcome, in one log."""

    log_id: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    start_ms: int
    superseded_ms: int | None
    """When a newer epoch of its producer was seen, if one was."""


class AbortedTransaction(Struct, frozen=True, kw_only=True):
    """A transaction whose batches in one log, up to its marker, no committed read may see."""

    log_id: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    """The marker's."""


class LogSegment(Struct, frozen=True, kw_only=True):
    """A range of one log, from ``base_offset`` to the next segment; see ``segments.py``."""

    log_id: int
    base_offset: int
    size_bytes: int
    """About what its batches take in the store."""
    start_ms: int
    """When it was begun."""
    last_ms: int
    """When it was last appended to."""


class LogIdsGiven(Struct, frozen=True, kw_only=True):
    """Log ids below ``next_log_id`` were given to logs, some of which are gone."""

    next_log_id: int


LogRecord: TypeAlias = (
    BatchAppended
    | MarkerAppended
    | ProducerFenced
    | ProducerForgotten
    | LogStartMoved
    | LogEndMoved
    | LogCopied
    | LogTakenOver
    | LogCompacted
    | ProducerState
    | OpenTransaction
    | AbortedTransaction
    | LogSegment
)
"""What changes one log, which its ``log_id`` names."""

Record: TypeAlias = (
    LogRecord
    | LogState
    | LogDropped
    | LogPurged
    | LogIdsGiven
    | CoordinatorEpochSeen
    | ClusterImage
)
"""Everything that a broker's journal holds."""
