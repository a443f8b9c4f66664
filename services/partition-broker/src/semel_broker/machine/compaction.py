"""Which logs are to be compacted, and how far.

A log is dirty from where the last pass has ended. How dirty it is, is counted in records, not in
bytes as Kafka does: offsets say how many are new, and the last pass has counted what it left.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from semel_broker.machine.aborted_index import AbortedIndex
from semel_broker.machine.gaps import is_allowed, with_gap
from semel_broker.machine.partition_log import PartitionLog
from semel_broker.machine.records import LogState
from semel_broker.machine.values import LogPlace
from semel_common.ids import TopicPartition
from semel_runtime.cluster.topic_options import TopicConfig


class CompactionPlan(Struct, frozen=True, kw_only=True):
    """What a pass over one log has to go by."""

    place: LogPlace
    log_start_offset: int
    dirty_offset: int
    """Where the last pass has ended."""
    last_stable_offset: int
    records_left: int
    """How many the last pass has left below it."""
    config: TopicConfig
    aborted: AbortedIndex
    """Keeps what it says about offsets below the last stable offset."""

    @property
    def log_id(self) -> int:
        """Names the log in the store."""
        return self.place.log_id

    @property
    def partition(self) -> TopicPartition:
        """The partition whose log it is."""
        return self.place.partition

    def dirty_ratio(self, upto: int) -> float:
        """Return the part of the records below an offset that is new; 0 if none is."""
        dirty = max(upto - self.dirty_offset, 0)
        return dirty / (dirty + self.records_left) if dirty else 0.0

    def is_due(self, upto: int, *, overdue: bool) -> bool:
        """Whether a pass up to an offset is worth while.

        ``overdue``: there is a record that is older than max.compaction.lag.ms.
        """
        ratio = self.dirty_ratio(upto)
        return ratio > self.config.min_cleanable_dirty_ratio or (overdue and ratio > 0)


def plans(logs: Iterable[PartitionLog]) -> list[CompactionPlan]:
    """Return what can be compacted, the dirtiest log first."""
    dirty = [
        _plan(log)
        for log in logs
        if log.config.cleanup_policy.compacts and _dirty_offset(log) < log.last_stable_offset
    ]
    return sorted(dirty, key=lambda plan: -plan.dirty_ratio(plan.last_stable_offset))


def _plan(log: PartitionLog) -> CompactionPlan:
    return CompactionPlan(
        place=log.place,
        log_start_offset=log.log_start_offset,
        dirty_offset=_dirty_offset(log),
        last_stable_offset=log.last_stable_offset,
        records_left=log.compacted.records_left,
        config=log.config,
        aborted=log.aborted,
    )


def thinned(log: PartitionLog, upto: int) -> Iterator[LogState]:
    """Yield the record that batches below an offset may be missing from now on, if it is news."""
    start = log.log_start_offset
    if start < upto and not is_allowed(log.gaps, start, upto):
        yield replace(log.state(), gaps=with_gap(log.gaps, start, upto))


def _dirty_offset(log: PartitionLog) -> int:
    return max(log.compacted.upto, log.log_start_offset)
