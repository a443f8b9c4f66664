"""Deciding what is cut off at the start of logs: by retention, and by DeleteRecords.

Theory of operation. A record that is cut off is not served any more as soon as that is decided; its
space is given back later (``purge.py``). Below the last stable offset nothing changes any more, so
a batch of an open transaction is never cut. The broker still remembers the producers: a repeat of a
batch that was cut off is still a repeat.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from semel_broker.machine.partition_log import PartitionLog
from semel_broker.machine.records import LogStartMoved
from semel_broker.machine.values import Deleted, DeletePosition, PartitionName
from semel_common.errors import InvalidRequestError, OffsetOutOfRangeError, PolicyViolationError


class Logs(Protocol):
    """Finds the log of a partition."""

    def find(self, name: PartitionName) -> PartitionLog:
        """Return the log; raise why it is not served here."""
        ...


class RecordDeletions:
    """Decides deletions, each at most once for a partition."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._taken: set[int] = set()
        self.records: list[LogStartMoved] = []

    def delete(self, position: DeletePosition) -> Deleted:
        """Cut off what lies below an offset; what is gone already may be named again.

        Raises OffsetOutOfRangeError past the last stable offset, PolicyViolationError for a topic
        that is only compacted, InvalidRequestError for a partition that is named twice, and what
        ``LogDirectory.find`` raises.
        """
        log = self._logs.find(position.name)
        if log.log_id in self._taken:
            raise InvalidRequestError(
                f"partition {log.partition.partition} of topic"
                f" {log.identity.topic!r} is named twice"
            )
        self._taken.add(log.log_id)
        stable = log.last_stable_offset
        before = stable if position.before_offset is None else position.before_offset
        _check(log, before)
        offset = max(before, log.log_start_offset)
        deleted = offset - log.log_start_offset
        if deleted:
            self.records.append(LogStartMoved(log_id=log.log_id, log_start_offset=offset))
        return Deleted(partition=log.partition, log_start_offset=offset, deleted_offsets=deleted)


def expired(logs: Iterable[PartitionLog], *, now_ms: int) -> Iterator[LogStartMoved]:
    """Yield where logs start once what their topics do not keep is gone."""
    for log in logs:
        offset = log.segments.retained_from(
            log.config,
            last_stable_offset=log.last_stable_offset,
            log_end_offset=log.log_end_offset,
            now_ms=now_ms,
        )
        if offset > log.log_start_offset:
            yield LogStartMoved(log_id=log.log_id, log_start_offset=offset)


def _check(log: PartitionLog, before: int) -> None:
    if not log.config.cleanup_policy.deletes:
        raise PolicyViolationError(
            f"records of topic {log.identity.topic!r} cannot be deleted:"
            f" its cleanup.policy is {log.config.cleanup_policy}"
        )
    stable = log.last_stable_offset
    if before > stable:
        end = f"high watermark {stable}"
        if stable < log.log_end_offset:
            end = f"last stable offset {stable}: what is open cannot be deleted"
        raise OffsetOutOfRangeError(
            f"offset {before} is past the {end}",
            log_start_offset=log.log_start_offset,
            last_stable_offset=stable,
            high_watermark=log.log_end_offset,
        )
