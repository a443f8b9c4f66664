"""The part of a consumer that asks for offsets, and commits them."""

from collections.abc import Iterable, Mapping

from aiosemel._cluster.log_offsets import AtTime, LogEnd
from aiosemel._consumer.consumer_part import ConsumerPart
from aiosemel._consumer.group.committed_offsets import to_commit
from aiosemel._shared.value_checks import check_number
from aiosemel.types.offsets import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    PartitionKey,
    TopicPartition,
    by_partition,
)


class ConsumerOffsets(ConsumerPart):
    """The ends of logs, and the committed offsets of a group."""

    # -- logs ------------------------------------------------------------------------------------

    async def beginning_offsets(
        self, partitions: Iterable[tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return where logs begin. Raises UnknownTopicOrPartitionError, RequestTimedOutError."""
        return await self._ends(partitions, OffsetSpec.EARLIEST, timeout_ms)

    async def end_offsets(
        self, partitions: Iterable[tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """As ``beginning_offsets``, of ends: with READ_COMMITTED, the last stable offsets."""
        return await self._ends(partitions, OffsetSpec.LATEST, timeout_ms)

    async def offsets_for_times(
        self, timestamps_ms: Mapping[PartitionKey, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record at a time or later, by partition; None without such a record.

        Times are milliseconds since 1970-01-01 UTC. With READ_COMMITTED, only records that are
        committed are found. Raises as ``beginning_offsets``.
        """
        self._check_usable()
        wanted = {
            each: AtTime(check_number("timestamp_ms", at))
            for each, at in by_partition("timestamps_ms", timestamps_ms).items()
        }
        return await self._log_offsets.find(wanted, self._deadline(timeout_ms))

    async def _ends(
        self, partitions: Iterable[tuple[str, int]], end: LogEnd, timeout_ms: int | None
    ) -> dict[TopicPartition, int]:
        self._check_usable()
        named = map(TopicPartition.named, partitions)
        return await self._log_offsets.ends([*named], end, self._deadline(timeout_ms))

    # -- committed offsets -----------------------------------------------------------------------

    async def commit(
        self,
        offsets: Mapping[PartitionKey, int | OffsetAndMetadata] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit offsets: of the next records to read, by partition. Without any: the positions.

        Not for a consumer whose offsets are sent in transactions. The call commits every accepted
        partition, then raises the error of the first rejected one, such as
        UnknownTopicOrPartitionError.

        Raises InvalidGroupIdError without a group id. Raises FencedMemberEpochError,
        UnknownMemberIdError or StaleMemberEpochError when the partitions may belong to another
        member by now; then no offset is committed. After RequestTimedOutError, and after a
        cancelled call, the offsets may be committed or not.
        """
        group = self._needs_group()
        self._start()
        wanted = to_commit(self._positions.positions()) if offsets is None else to_commit(offsets)
        await group.commit(wanted, self._deadline(timeout_ms))

    async def committed(
        self, partitions: Iterable[tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of the group; None for a partition without an offset.

        With READ_COMMITTED, waits for open transactions that may still change an offset. Raises
        InvalidGroupIdError without a group id, UnstableOffsetCommitError when it took too long,
        UnknownTopicOrPartitionError if a partition is not there, some seconds later; of a member
        whose partitions may belong to another by now, UnknownMemberIdError,
        FencedMemberEpochError or StaleMemberEpochError, until a poll has joined again.
        """
        group, named = self._needs_group(), map(TopicPartition.named, partitions)
        self._start()
        return await group.committed(named, self._deadline(timeout_ms))
