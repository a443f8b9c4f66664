"""The records' part of the admin client: where logs begin and end, counts, waits, deletions."""

from collections.abc import Mapping

from aiosemel._admin.admin_part import AdminPart
from aiosemel._cluster.log_offsets import AtTime, LogOffsets, RecordDeletion
from aiosemel._cluster.record_counts import RecordCounts
from aiosemel._consumer.waiting_for_records import Waiting
from aiosemel._shared.value_checks import check_number
from aiosemel.types.isolation import IsolationLevel
from aiosemel.types.offsets import (
    DeletedRecords,
    Lag,
    OffsetAndTimestamp,
    OffsetSpec,
    PartitionKey,
    TopicPartition,
    by_partition,
)
from semel.coordinator.v1.outcomes_pb2 import Operator


class RecordAdmin(AdminPart):
    """Finds, counts and deletes records by their offsets."""

    async def list_offsets(
        self,
        partitions: Mapping[PartitionKey, OffsetSpec | int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return where logs begin or end, or the first record at a time or later, by partition.

        An int is a time in milliseconds since 1970-01-01 UTC. The answer is None if no record is
        that late, or if the partition has no newest record. The latest offset is the end of the
        durable log, the high watermark; with READ_COMMITTED it is the last stable offset, and a
        time finds committed records only. Raises UnknownTopicOrPartitionError.
        """
        wanted = {
            each: at if isinstance(at, OffsetSpec) else AtTime(check_number("timestamp_ms", at))
            for each, at in by_partition("partitions", partitions).items()
        }
        offsets = LogOffsets(self._cluster, isolation_level)
        return await offsets.find(wanted, self._deadline())

    async def wait_for_records(
        self,
        ends: Mapping[PartitionKey, int],
        *,
        max_wait_ms: int,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> None:
        """Return as soon as a reader at one of these offsets may find a record, or after a while.

        It may also return sooner, because something has failed: list the offsets to see.
        """
        wanted = _offsets("ends", ends)
        waiting = Waiting(self._cluster, isolation_level)
        await waiting.wait(wanted, max_wait_ms)

    async def count_records(
        self,
        starts: Mapping[PartitionKey, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, int]:
        """Return how many records a reader at these offsets has yet to see, which is its lag.

        Markers are not counted, nor, with READ_COMMITTED, aborted records. Past the end of a log
        there is nothing to see. Raises UnknownTopicOrPartitionError.
        """
        lags = await self.measure_lag(starts, isolation_level=isolation_level)
        return {each: lag.records for each, lag in lags.items()}

    async def measure_lag(
        self,
        starts: Mapping[PartitionKey, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, Lag]:
        """Return what a reader at these offsets has yet to see: as ``count_records``, with a time.

        A group that stands at such an offset is late by the age of its oldest unread record. Raises
        UnknownTopicOrPartitionError.
        """
        wanted = _offsets("starts", starts)
        return await RecordCounts(self._cluster, isolation_level).count(wanted, self._deadline())

    async def delete_records(
        self,
        before: Mapping[PartitionKey, int | None],
        *,
        validate_only: bool = False,
        operator: str = "",
        reason: str = "",
    ) -> dict[TopicPartition, DeletedRecords]:
        """Delete the oldest records of partitions: those below an offset; None: all.

        They are gone at once, their space is given back little by little. What an open transaction
        has written, and what comes after it, stays. ``validate_only`` deletes nothing. May be
        repeated. ``operator`` and ``reason`` go into the audit. Raises OffsetOutOfRangeError past
        the last stable offset, PolicyViolationError for topics that are only compacted,
        UnknownTopicOrPartitionError.
        """
        asks = Operator(name=operator, reason=reason)
        deletion = RecordDeletion(self._cluster, asks, validate_only=validate_only)
        wanted = by_partition("before", before)
        for offset in wanted.values():
            if offset is not None:
                check_number("offset", offset)
        return await deletion.delete(wanted, self._deadline())


def _offsets(what: str, given: Mapping[PartitionKey, int]) -> dict[TopicPartition, int]:
    return {
        each: check_number("offset", offset) for each, offset in by_partition(what, given).items()
    }
