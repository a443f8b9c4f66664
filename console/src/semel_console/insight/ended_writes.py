"""What a transaction that has ended wrote, asked of the brokers that lead its partitions."""

import asyncio
from collections.abc import Mapping
from typing import TypeAlias

from aiosemel import Admin, EndedTransaction, PartitionWrites, TopicPartition
from aiosemel.errors import SemelError

Writes: TypeAlias = Mapping[TopicPartition, PartitionWrites | SemelError]
"""By partition; an error where no broker can tell."""

PARTITIONS_MAX = 16
"""The partitions of one transaction that brokers are asked about."""
_EARLIER_MS = 60_000
"""The coordinator hears of a short transaction at its end, which may be so long after its begin."""


async def ended_writes(admin: Admin, ended: EndedTransaction) -> Writes:
    """Ask for the records of the first partitions; an error of one leaves the others."""
    begin_ms = _search_begin_ms(ended)
    places = [each.partition for each in ended.participants if each.partition is not None]
    async with asyncio.TaskGroup() as group:
        asked = {
            at: group.create_task(_writes(admin, ended, at, begin_ms))
            for at in places[:PARTITIONS_MAX]
        }
    return {at: task.result() for at, task in asked.items()}


async def writes_in(
    admin: Admin, ended: EndedTransaction, at: TopicPartition
) -> PartitionWrites | SemelError:
    """Ask for the records of a transaction in one partition."""
    return await _writes(admin, ended, at, _search_begin_ms(ended))


def lasted_ms(ended: EndedTransaction) -> int | None:
    """Return how long a transaction lasted, from its registration until it was complete.

    The coordinator knows no earlier moment: its first write came before its registration, by up to
    the time after which producers register a transaction. None: not known.
    """
    if not ended.start_time_ms or not ended.completed_time_ms:
        return None
    return max(0, ended.completed_time_ms - ended.start_time_ms)


def first_write_ms(ended: EndedTransaction, writes: PartitionWrites) -> int | None:
    """Return the timestamp of the first record; None for one that is no time of the transaction.

    Producers may give records other timestamps than the time of day.
    """
    time_ms, end_ms = writes.first_timestamp_ms, ended.completed_time_ms
    if time_ms is None or end_ms is None:
        return None
    return time_ms if _search_begin_ms(ended) <= time_ms <= end_ms else None


async def _writes(
    admin: Admin, ended: EndedTransaction, at: TopicPartition, begin_ms: int
) -> PartitionWrites | SemelError:
    try:
        found = await admin.operators.describe_writes(
            [at],
            producer_id=ended.producer_id,
            producer_epoch=ended.producer_epoch,
            from_time_ms=begin_ms,
        )
    except SemelError as error:
        return error
    return found[at]


def _search_begin_ms(ended: EndedTransaction) -> int:
    known_ms = ended.start_time_ms or ended.decided_time_ms or ended.completed_time_ms or 0
    return max(0, known_ms - _EARLIER_MS)
