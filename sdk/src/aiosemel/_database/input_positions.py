"""Puts a consumer where its group's positions in the database say.

Theory of operation. The database alone says where a group goes on: its positions commit together
with the effects of the records. The group's committed offsets follow, for lag and consoles. So each
of three witnesses can show that one of them went back to a backup: the position in the database,
the group's committed offset, and the log itself, of which the database has the last record's
checksum.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from aiosemel._admin.admin import Admin
from aiosemel._consumer.consumer import Consumer
from aiosemel._consumer.log_ranges import LogRange, LogRangeReader
from aiosemel._database.driver_errors import passing_errors
from aiosemel._database.group_offsets import GroupOffsets
from aiosemel._database.positions_table import LogKey, PositionsTable, StoredPosition, checksum
from aiosemel._database.restored import Witnesses, starting_point
from aiosemel._shared.context import Context
from aiosemel._transform.pausing import Pausing
from aiosemel._transform.poison import Input
from aiosemel.database.contract import Database, DatabaseSession
from aiosemel.errors import (
    DatabasePositionMovedError,
    OffsetOutOfRangeError,
    RetriableError,
)
from aiosemel.options.consumer_options import ConsumerOptions, OffsetReset
from aiosemel.types.after_restore import AfterRestore
from aiosemel.types.offsets import OffsetAndMetadata, TopicPartition
from semel_common.library_log import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRules:
    """The rules for a position that is missing, or does not fit."""

    reset: OffsetReset
    after_restore: AfterRestore
    repeats_outputs: bool
    """Whether reading records again sends to topics a second time."""


class InputPositions:
    """The positions of one consumer."""

    def __init__(
        self,
        context: Context,
        consumer: Consumer,
        database: Database[object],
        group: str,
        rules: PositionRules,
        pausing: Pausing,
        offsets: GroupOffsets,
    ) -> None:
        self._context = context
        self._consumer = consumer
        self._database = database
        self._admin = Admin(context.cluster)
        self._table = PositionsTable(group, database.dialect)
        self._group = group
        self._rules = rules
        self._pausing = pausing
        self._offsets = offsets
        self._checked: set[LogKey] = set()
        """Logs that were compared with the database since this consumer got them."""
        self._stored: dict[TopicPartition, StoredPosition] = {}
        """As they were read or written last."""

    async def find(self, partitions: Collection[TopicPartition]) -> None:
        """Read where the consumer goes on in these partitions, and put it there.

        Waits as long as the database, or a service, does not answer. Raises DatabaseBehindError and
        DatabaseAheadError.
        """
        while not self._pausing.stopping:
            try:
                with passing_errors():
                    await self._find(self._keys(partitions))
            except RetriableError as error:
                _log.warning("looking for positions of %s again: %s", self._group, error)
                await self._pausing.pause()
            else:
                return

    def given(self, partitions: Collection[TopicPartition]) -> None:
        """Compare these logs with the database when their positions are read next."""
        self._checked.difference_update(self._keys(partitions).values())

    async def move(
        self,
        transaction: DatabaseSession[object],
        ends: Mapping[TopicPartition, OffsetAndMetadata],
        taken: Input,
    ) -> None:
        """Move positions behind what was processed, as a part of its transaction.

        Raises DatabasePositionMovedError if another instance has moved one of them, or a record
        lies before its position: it is processed.
        """
        now_ms = self._context.clock.now_ms()
        keys, first, last = self._keys(ends), taken.starts(), taken.last()
        for topic_partition, end in ends.items():
            position = StoredPosition(
                next_offset=end.offset,
                last_offset=last[topic_partition].offset,
                last_crc=checksum(last[topic_partition]),
            )
            expected = self._stored.get(topic_partition)
            key = keys.get(topic_partition)
            if (
                expected is None
                or key is None
                or first[topic_partition] < expected.next_offset
                or not await self._table.move(
                    transaction, key, expected.next_offset, position, now_ms
                )
            ):
                raise DatabasePositionMovedError(
                    f"another instance of group {self._group!r} has moved the position of"
                    f" {topic_partition} in the database: its records are processed"
                )

    async def have_moved(self, ends: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
        """Read whether the database has these positions."""
        keys = self._keys(ends)
        async with self._database.transaction() as transaction:
            stored = await self._table.read(transaction, keys.values())
        return len(keys) == len(ends) and all(
            stored[keys[each]].next_offset == end.offset for each, end in ends.items()
        )

    def moved(
        self,
        ends: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> None:
        """Note positions that were committed."""
        for topic_partition, end in ends.items():
            self._stored[topic_partition] = StoredPosition(next_offset=end.offset)

    def _keys(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, LogKey]:
        """Return the logs of those partitions that the consumer holds."""
        ids = self._consumer.topic_ids()
        return {each: LogKey(ids[each], each.partition) for each in partitions if each in ids}

    async def _find(self, keys: dict[TopicPartition, LogKey]) -> None:
        async with self._database.transaction() as transaction:
            stored = await self._table.read(transaction, keys.values())
        unchecked = {each: key for each, key in keys.items() if key not in self._checked}
        if unchecked:
            await self._check(unchecked, stored)
        for topic_partition, key in keys.items():
            self._stored[topic_partition] = stored[key]
            if topic_partition in self._consumer.assignment():
                self._consumer.seek(topic_partition, stored[key].next_offset)

    async def _check(
        self, keys: dict[TopicPartition, LogKey], stored: dict[LogKey, StoredPosition]
    ) -> None:
        """Compare positions with the logs and the group's offsets; store missing ones."""
        begins = await self._consumer.beginning_offsets(keys)
        ends = await self._consumer.end_offsets(keys)
        committed = await self._admin.list_consumer_group_offsets(
            self._group, keys, require_stable=True
        )
        for each, key in keys.items():
            position = stored.get(key)
            offset = committed[each]
            start = starting_point(
                f"group {self._group!r} in {each}",
                Witnesses(
                    stored=None if position is None else position.next_offset,
                    committed=None if offset is None else offset.offset,
                    begin=begins[each],
                    end=ends[each],
                    is_other_log=await self._is_other_log(each, key, position, ends[each]),
                ),
                self._rules,
            )
            if position is None or position.next_offset != start:
                stored[key] = await self._store(key, position, start)
            elif start > (0 if offset is None else offset.offset):
                # An earlier owner ended before it had committed the group's offset.
                self._offsets.note({each: OffsetAndMetadata(start)})
            self._checked.add(key)

    async def _store(self, key: LogKey, known: StoredPosition | None, start: int) -> StoredPosition:
        """Store where the group goes on: before its first read, and after a restore."""
        now_ms = self._context.clock.now_ms()
        async with self._database.transaction() as transaction:
            if known is None:
                await self._table.insert(transaction, key, start, now_ms)
            else:
                to = StoredPosition(next_offset=start)
                await self._table.move(transaction, key, known.next_offset, to, now_ms)
            return (await self._table.read(transaction, [key]))[key]

    async def _is_other_log(
        self, at: TopicPartition, key: LogKey, position: StoredPosition | None, end: int
    ) -> bool:
        """Whether the log has another record where the database has processed its last one.

        A record that retention or compaction has removed says nothing.
        """
        if position is None or position.last_offset is None or position.last_offset >= end:
            return False
        one = LogRange(
            topic=at.topic,
            topic_id=key.topic_id,
            partition=at.partition,
            start_offset=position.last_offset,
            end_offset=position.last_offset + 1,
        )
        reader = LogRangeReader(self._context, one, ConsumerOptions())
        try:
            found = [record for batch in await reader.read() for record in batch.records()]
        except OffsetOutOfRangeError:
            return False
        return any(checksum(record) != position.last_crc for record in found)
