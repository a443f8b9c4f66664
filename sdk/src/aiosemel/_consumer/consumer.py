"""The consumer: reads the records of partitions, by itself or as a member of a group.

Every step of a rebalance happens inside ``poll``, ``poll_columns`` and ``async for``: callbacks run
there, and the consumer gives partitions up there and nowhere else. A program that processes records
between two polls may therefore count on its partitions, for ``max_poll_interval_ms``.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Self

from aiosemel._cluster.log_offsets import AtTime, LogEnd, LogOffsets
from aiosemel._cluster.retry import Deadline
from aiosemel._consumer.fetched_batch import open_batch
from aiosemel._consumer.fetching.fetcher import Fetcher
from aiosemel._consumer.group.committed_offsets import to_commit
from aiosemel._consumer.group.group import Group
from aiosemel._consumer.group.rebalance import Callbacks, RebalanceCallback
from aiosemel._consumer.partition_state import OffsetReset
from aiosemel._consumer.polling import Polling
from aiosemel._consumer.positions import Positions
from aiosemel._shared.background_task import Background
from aiosemel._shared.change_signal import Signal
from aiosemel._shared.closing import Closing
from aiosemel._shared.context import Context
from aiosemel._shared.name_checks import check_topic_names
from aiosemel._shared.value_checks import check_number
from aiosemel.errors import ClosedError, IllegalStateError, InvalidGroupIdError
from aiosemel.options.consumer_options import ConsumerOptions
from aiosemel.types.consumer_records import ColumnBatch, ConsumerRecord
from aiosemel.types.offsets import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    PartitionKey,
    TopicPartition,
)

POLL_RECORDS = 500
POLL_COLUMN_RECORDS = 100_000
POLL_TIMEOUT_MS = 500
CLOSE_TIMEOUT_MS = 5_000


class Consumer:
    """Reads from one cluster. Made by ``SemelClient.consumer``.

    ::

        async with client.consumer("reports") as consumer:
            consumer.subscribe(["orders"])
            async for record in consumer:
                ...
                await consumer.commit()

    Partitions are named by (topic, partition). Not to be polled by two tasks at a time.
    """

    def __init__(
        self, context: Context, group_id: str | None = None, options: ConsumerOptions | None = None
    ) -> None:
        """Do no I/O yet. Without a group id, nothing can be subscribed to or committed."""
        self._context = context
        self._options = options or ConsumerOptions()
        self._group_id = group_id
        self._arrived = Signal()
        self._positions = Positions(
            open_batch(self._options),
            policy=OffsetReset(self._options.auto_offset_reset),
            prefetch_max_bytes=self._options.prefetch_max_bytes,
            partition_max_bytes=self._options.max_partition_fetch_bytes,
        )
        self._group: Group | None = None
        self._fetcher: Fetcher
        if group_id is not None:
            look = lambda: self._fetcher.look()  # noqa: E731, PLW0108 - it is made below
            self._group = Group(
                context, group_id, self._options, self._positions, self._arrived, look
            )
        offsets = None if self._group is None else self._group.offsets
        self._fetcher = Fetcher(
            context.cluster, self._positions, offsets, self._options, self._arrived
        )
        self._log_offsets = LogOffsets(context.cluster, self._options.isolation_level)
        self._background = Background(self._work, self._arrived.notify)
        self._polling = Polling(
            self._positions,
            self._fetcher,
            self._arrived,
            group=self._group,
            group_id=group_id,
            check=self._check,
            tracer=context.tracer,
        )
        self._closed = False
        self._closing = Closing(partial(context.forget, self))

    # -- which partitions ------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Collection[str],
        *,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Read topics as a member of the group, which gives this consumer some of their partitions.

        The callbacks run inside ``poll``: ``on_assigned`` after partitions came, and may seek;
        ``on_revoked`` before partitions go, while they still belong to this consumer: a program
        with an open transaction on their records ends it there. ``on_lost`` runs when the
        partitions are gone already, because the group had not heard from this member; by default,
        it calls ``on_revoked``. If a callback is cancelled with its poll, the next poll calls it
        again, except ``on_lost``. Another subscription replaces topics and callbacks. The consumer
        reads a missing topic as soon as it exists. Raises InvalidTopicError for an invalid name,
        InvalidGroupIdError without a group id, IllegalStateError after ``assign``.
        """
        self._check_open()
        group = self._needs_group()
        if not group.subscribed and self._positions.held():
            raise IllegalStateError("the consumer has assigned partitions: it cannot subscribe")
        check_topic_names(topics)
        callbacks = Callbacks(
            on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost or on_revoked
        )
        group.subscribe(topics, callbacks)

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions and no others, whatever any group says.

        Each starts at the group's committed offset, if there is a group id, else where
        ``auto_offset_reset`` says. Partitions that were assigned before keep their positions.
        Raises IllegalStateError after ``subscribe``.
        """
        self._check_open()
        if self._group is not None and self._group.subscribed:
            raise IllegalStateError("the consumer has subscribed to topics: it cannot assign")
        wanted = {TopicPartition.named(partition) for partition in partitions}
        for gone in self._positions.held() - wanted:
            self._positions.unassign(gone)
        for new in sorted(wanted - self._positions.held()):
            self._positions.assign(new, topic_id="")
        self._fetcher.leaders.reports_missing = bool(
            wanted
        )  # a consumer without partitions may subscribe
        self._fetcher.look()

    async def unsubscribe(self) -> None:
        """Give up all partitions, those of ``assign`` too, and leave the group.

        ``on_revoked`` is told first; what it raises is raised when all is given up. Then
        ``subscribe`` or ``assign`` again. Raises IllegalStateError while another task polls.
        """
        self._check_open()
        with self._polling.alone():
            try:
                if self._group is not None:
                    await self._group.unsubscribe()
            finally:
                for ticket in self._positions.held():
                    self._positions.unassign(ticket)
                self._fetcher.leaders.reports_missing = False

    def subscription(self) -> frozenset[str]:
        """Return the topics that this consumer is subscribed to."""
        return frozenset() if self._group is None else self._group.member.membership.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that this consumer holds."""
        return self._positions.held()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return who this consumer is in its group: what fences it when offsets are committed.

        Raises InvalidGroupIdError without a group id.
        """
        return self._needs_group().metadata()

    # -- records ---------------------------------------------------------------------------------

    async def poll(
        self, max_records: int = POLL_RECORDS, timeout_ms: int = POLL_TIMEOUT_MS
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return the next records by partition as soon as there are any; none after ``timeout_ms``.

        The positions move past what is returned. Raises NoOffsetForPartitionError and
        OffsetOutOfRangeError when ``auto_offset_reset`` is none, CorruptMessageError, whatever a
        callback raises, and what ends a membership for good. A cancelled call has returned nothing,
        and moved nothing.
        """
        by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        for batch in await self._take(max_records, timeout_ms):
            by_partition.setdefault(batch.topic_partition, []).extend(batch.records())
        return by_partition

    async def poll_columns(
        self, max_records: int = POLL_COLUMN_RECORDS, timeout_ms: int = POLL_TIMEOUT_MS
    ) -> dict[TopicPartition, list[ColumnBatch]]:
        """Return the next records by partition as batches of columns: ``poll`` for bulk."""
        by_partition: dict[TopicPartition, list[ColumnBatch]] = {}
        for batch in await self._take(max_records, timeout_ms):
            by_partition.setdefault(batch.topic_partition, []).append(batch)
        return by_partition

    def __aiter__(self) -> Self:
        self._check_open()
        return self

    async def __anext__(self) -> ConsumerRecord:
        """Wait for the next record. The position moves one by one, so ``commit`` commits it.

        ``close``, by any task, ends the iteration.
        """
        try:
            while self._closed or (record := self._polling.take_at_once()) is None:
                for batch in await self._take(1, POLL_TIMEOUT_MS):
                    return batch.record(0)
        except ClosedError:
            if not self._closed:
                raise
            raise StopAsyncIteration from None
        return record

    async def _take(self, max_records: int, timeout_ms: int) -> list[ColumnBatch]:
        self._start()
        return await self._polling.take(max_records, timeout_ms)

    def wakeup(self) -> None:
        """Let the poll that waits now, or else the next one that would, return without records.

        ``async for`` goes on: ``close`` ends it.
        """
        self._polling.wakeup()

    # -- positions -------------------------------------------------------------------------------

    def seek(self, partition: tuple[str, int], offset: int) -> None:
        """Read on at an offset. Raises IllegalStateError for a partition that is not held."""
        check_number("offset", offset)
        self._positions.seek(self._held(partition), offset)
        self._fetcher.look()

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Read on at the start of the logs: of all partitions, if none is named."""
        self._seek_to(partitions, OffsetReset.EARLIEST)

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Read on at the end of the logs: of all partitions, if none is named.

        The end is the last stable offset with READ_COMMITTED.
        """
        self._seek_to(partitions, OffsetReset.LATEST)

    def seek_to_committed(self, *partitions: tuple[str, int]) -> None:
        """Read on where the group's committed offsets say, or else ``auto_offset_reset``."""
        for topic_partition in self._named(partitions):
            self._positions.seek_to_committed(topic_partition)
        self._fetcher.look()

    def _seek_to(self, partitions: Collection[tuple[str, int]], reset: OffsetReset) -> None:
        for topic_partition in self._named(partitions):
            self._positions.seek_to(topic_partition, reset)
        self._fetcher.look()

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Return no records of these partitions, of all if none is named, until ``resume``.

        They stay with this consumer for as long as it polls, with their positions; what one gives
        up and gets again is not paused. Raises IllegalStateError for one that is not held.
        """
        for topic_partition in self._named(partitions):
            self._positions.pause(topic_partition)

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Go on with paused partitions: with all, if none is named. Raises as ``pause``."""
        for topic_partition in self._named(partitions):
            self._positions.resume(topic_partition)
        self._fetcher.look()
        self._arrived.notify()

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        return self._positions.paused()

    async def position(self, partition: tuple[str, int], timeout_ms: int | None = None) -> int:
        """Return the offset of the next record that the user gets; waits until it is known.

        Raises IllegalStateError for a partition that is not held, RequestTimedOutError from what
        went wrong last, and as ``poll`` what is wrong with the partition; for a position that was
        not found before the group took the partition away (``on_lost``), what ``committed`` raises.
        """
        held = partial(self._supplied, partition)
        return await self._polling.position(held, self._deadline(timeout_ms))

    def positions(self) -> dict[TopicPartition, int]:
        """Return the positions that are known now."""
        return self._positions.positions()

    def _named(self, partitions: Collection[tuple[str, int]]) -> list[TopicPartition]:
        return [self._held(each) for each in partitions or self._positions.held()]

    def _supplied(self, partition: tuple[str, int]) -> TopicPartition:
        self._start()
        self._background.check()
        return self._held(partition)

    def _held(self, partition: tuple[str, int]) -> TopicPartition:
        self._context.cluster.home.check()
        held = TopicPartition.named(partition)
        if held not in self._positions:
            raise IllegalStateError(f"{held} is not assigned to this consumer")
        return held

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
        """Return the first record at a time or later, by partition; None where there is none.

        Times are milliseconds since 1970-01-01 UTC. With READ_COMMITTED, only records that are
        committed are found. Raises as ``beginning_offsets``.
        """
        self._check_usable()
        wanted = {TopicPartition.named(each): AtTime(at) for each, at in timestamps_ms.items()}
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

        Not for a consumer whose offsets are sent in transactions. Raises InvalidGroupIdError
        without a group id; FencedMemberEpochError, UnknownMemberIdError, StaleMemberEpochError when
        the partitions may belong to another member by now: nothing is committed then;
        RequestTimedOutError: it may be committed, and so may it when the call was cancelled. Of a
        partition that is refused, such as for UnknownTopicOrPartitionError, raises the error when
        all others are committed.
        """
        group = self._needs_group()
        self._start()
        wanted = to_commit(self._positions.positions()) if offsets is None else to_commit(offsets)
        await group.commit(wanted, self._deadline(timeout_ms))

    async def committed(
        self, partitions: Iterable[tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has committed; None for a partition without an offset.

        With READ_COMMITTED, waits for open transactions that may still change an offset. Raises
        InvalidGroupIdError without a group id, UnstableOffsetCommitError when it took too long,
        UnknownTopicOrPartitionError if a partition is not there, some seconds later; of a member
        whose partitions may belong to another by now, UnknownMemberIdError,
        FencedMemberEpochError or StaleMemberEpochError, until a poll has joined again.
        """
        group, named = self._needs_group(), map(TopicPartition.named, partitions)
        self._start()
        return await group.committed(named, self._deadline(timeout_ms))

    # -- life ------------------------------------------------------------------------------------

    async def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS) -> None:
        """Give up all partitions, leave the group, and stop. May be called twice.

        ``on_revoked`` is told first, however long it takes, and may commit. Raises what it raises,
        when everything is closed. The group coordinator has ``timeout_ms`` to hear of it, and as
        long before to commit the positions, if that is done without asking.
        """
        self._context.cluster.home.check()
        self._closed = True
        await self._closing.once(partial(self._close, timeout_ms))

    async def _close(self, timeout_ms: int) -> None:
        started = self._background.running
        try:
            if self._group is not None and started:
                await self._group.give_up_all(Deadline.after_ms(timeout_ms))
        finally:
            await self._background.close()
            self._arrived.notify()
            if self._group is not None and started:
                await self._group.member.leave(Deadline.after_ms(timeout_ms))

    async def __aenter__(self) -> Self:
        self._check_open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _check_usable(self) -> None:
        self._context.cluster.home.check()
        if not self._background.running:  # Else ``on_revoked`` may be told of a close just now.
            self._check_open()

    def _start(self) -> None:
        self._check_usable()
        if not self._background.running:
            self._background.start(self._context.spawn, f"consumer {self._group_id or ''}".strip())

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fetcher.run(), name="consumer fetcher")
            if self._group is not None:
                group.create_task(self._group.member.run(), name="consumer heartbeats")

    def _needs_group(self) -> Group:
        if self._group is None:
            raise InvalidGroupIdError("the consumer has no group id")
        return self._group

    def _check(self) -> None:
        self._check_open()
        self._background.check()

    def _check_open(self) -> None:
        self._context.cluster.home.check()
        if self._closed:
            raise ClosedError("the consumer is closed")

    def _deadline(self, timeout_ms: int | None) -> Deadline:
        default_ms = self._context.cluster.options.default_api_timeout_ms
        return Deadline.after_ms(default_ms if timeout_ms is None else timeout_ms)
