"""The consumer: reads the records of partitions, by itself or as a member of a group.

Every step of a rebalance happens inside ``poll``, ``poll_columns`` and ``async for``: callbacks run
there, and the consumer gives partitions up there and nowhere else. A program that processes records
between two polls may therefore count on its partitions, for ``max_poll_interval_ms``.
"""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Self

from aiosemel._cluster.retry import Deadline
from aiosemel._consumer.consumer_offsets import ConsumerOffsets
from aiosemel._consumer.consumer_positions import ConsumerPositions
from aiosemel._consumer.group.rebalance import Callbacks, RebalanceCallback
from aiosemel._shared.name_checks import check_topic_names
from aiosemel.errors import ClosedError, IllegalStateError
from aiosemel.types.consumer_records import ColumnBatch, ConsumerRecord
from aiosemel.types.offsets import (
    ConsumerGroupMetadata,
    TopicPartition,
)

POLL_RECORDS = 500
POLL_COLUMN_RECORDS = 100_000
POLL_TIMEOUT_MS = 500
CLOSE_TIMEOUT_MS = 5_000


class Consumer(ConsumerPositions, ConsumerOffsets):
    """Reads from one cluster. Made by ``SemelClient.consumer``.

    ::

        async with client.consumer("reports") as consumer:
            consumer.subscribe(["orders"])
            async for record in consumer:
                ...
                await consumer.commit()

    Partitions are named by (topic, partition). Not to be polled by two tasks at a time.
    """

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
