"""Which logs are to be compacted, and how far.

A log is dirty from where the last pass has ended. How dirty it is, is counted in records, not in
bytes as Kafka does: offsets say how many are new, and the last pass has counted what it left.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from semel_broker.machine.limits import LogLimits
from semel_broker.machine.log.aborted_index import AbortedIndex
from semel_broker.machine.log.gaps import is_allowed, with_gap
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.produce import batch_max_bytes
from semel_broker.machine.records import LogCompacted, LogState, Record
from semel_broker.machine.values import LogPlace, PartitionName
from semel_common.ids import TopicPartition
from semel_runtime.cluster.topic_options import TopicConfig
from semel_runtime.machine import Result


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


class LogCompaction:
    """Decides about passes over the logs that are led here and move nowhere."""

    def __init__(self, logs: LogDirectory, limits: LogLimits) -> None:
        self._logs = logs
        self._limits = limits

    def logs_to_compact(self) -> Result[list[CompactionPlan], Record]:
        """Return what can be compacted, the dirtiest log first."""
        return Result(plans(filter(self._logs.is_settled, self._logs)))

    def thin_out(self, log_id: int, upto: int) -> Result[bool, Record]:
        """Note that a pass of compaction begins below an offset; answers whether it may."""
        log = self._logs.get(log_id)
        if log is None or not self.is_compacted(log_id):
            return Result(False)
        return Result(True, list(thinned(log, upto)))

    def is_compacted(self, log_id: int) -> bool:
        """Whether a log is led here and moves nowhere, and its topic is compacted."""
        log = self._logs.get(log_id)
        return log is not None and log.config.cleanup_policy.compacts and self._logs.is_settled(log)

    def keyed_batch_max_bytes(self, name: PartitionName) -> int | None:
        """Return how large a batch may be where records without a key are refused.

        None: they are taken, or nothing is known of the partition.
        """
        log = self._logs.look_up(name)
        if log is None or not log.config.cleanup_policy.compacts:
            return None
        return batch_max_bytes(log, self._limits)

    def compacted(self, end: LogCompacted) -> Result[None, Record]:
        """Note the end of a pass; of a log that is gone or moves, it is of no interest."""
        log = self._logs.get(end.log_id)
        return Result(None, (end,) if log is not None and self._logs.is_settled(log) else ())


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
