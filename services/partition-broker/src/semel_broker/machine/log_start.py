"""Deciding what is cut off at the start of logs: by retention, and by DeleteRecords.

Theory of operation. A record that is cut off is not served any more as soon as that is decided; its
space is given back later (``purge.py``). Below the last stable offset nothing changes any more, so
a batch of an open transaction is never cut. The broker still remembers the producers: a repeat of a
batch that was cut off is still a repeat.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from semel_broker.machine.answers import answer_of
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.log.retention import retained_from
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.records import LogStartMoved, Record
from semel_broker.machine.values import Deleted, DeletePosition
from semel_common.errors import (
    InvalidRequestError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    SemelError,
)
from semel_common.ids import TopicPartition
from semel_runtime.machine import Result


class LogStarts:
    """Decides where the logs that are led here start."""

    def __init__(self, logs: LogDirectory) -> None:
        self._logs = logs

    def delete_records(
        self, positions: Sequence[DeletePosition], *, validate_only: bool = False
    ) -> Result[list[Deleted | SemelError], Record]:
        """Serve nothing below an offset of each partition any more; idempotent."""
        decisions = _Deletions(self._logs)
        answers = [answer_of(partial(decisions.delete, position)) for position in positions]
        return Result(answers, () if validate_only else decisions.records)

    def apply_retention(
        self, partitions: Iterable[TopicPartition], *, now_ms: int
    ) -> Result[None, Record]:
        """Cut off what topics do not keep any more; never past the last stable offset."""
        return Result(None, list(_expired(self._logs.led_of(partitions), now_ms=now_ms)))

    def cut_logs(self) -> Result[dict[int, int], Record]:
        """Return where each log starts that has been cut, by log id."""
        return Result(
            {log.log_id: log.log_start_offset for log in self._logs if log.log_start_offset}
        )


class _Deletions:
    """Decides deletions, each at most once for a partition."""

    def __init__(self, logs: LogDirectory) -> None:
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


def _expired(logs: Iterable[PartitionLog], *, now_ms: int) -> Iterator[LogStartMoved]:
    """Yield the new start of each log whose oldest records its topic does not keep."""
    for log in logs:
        offset = retained_from(
            log.segments,
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
            end = f"last stable offset {stable}: open transactions cannot be deleted"
        raise OffsetOutOfRangeError(
            f"offset {before} is past the {end}",
            log_start_offset=log.log_start_offset,
            last_stable_offset=stable,
            high_watermark=log.log_end_offset,
        )
