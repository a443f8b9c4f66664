"""What an open transaction has written so far: brokers and group coordinators know that."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from aiosemel import (
    Admin,
    TopicPartition,
    TransactionalIdDescription,
    TransactionDescription,
    TransactionState,
)
from aiosemel.errors import GroupIdNotFoundError, SemelError

Offsets: TypeAlias = Mapping[TopicPartition, int]
"""Offsets that a transaction commits with itself."""

UNDECIDED = (TransactionState.ONGOING, TransactionState.PREPARED)
PARTICIPANTS_MAX = 16
"""The partitions, and the groups, of one transaction that are asked about."""
_NAMED_MAX = 16
"""The partitions of one group that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstWrite:
    """Where an open transaction began to write in one partition."""

    partition: TopicPartition
    first_offset: int
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWrites:
    """The answers about one transaction; an error stands where an instance cannot tell."""

    first_writes: Mapping[TopicPartition, FirstWrite | SemelError | None]
    """None: the partition has no record of it yet."""
    offsets: Mapping[str, Offsets | SemelError]
    """By group id."""


async def open_writes(
    admin: Admin, described: TransactionalIdDescription, chosen: TransactionDescription
) -> OpenWrites:
    """Ask about the first participants at the same time; an error of one leaves the others."""
    producer = (chosen.producer_id or described.producer_id, chosen.producer_epoch)
    wrote = chosen.participants
    async with asyncio.TaskGroup() as tasks:
        writes = {
            at: tasks.create_task(_first_write(admin, at, producer))
            for at in wrote.partitions[:PARTICIPANTS_MAX]
        }
        offsets = {
            group_id: tasks.create_task(_offsets(admin, group_id, producer))
            for group_id in wrote.group_ids[:PARTICIPANTS_MAX]
        }
    return OpenWrites(
        first_writes={at: task.result() for at, task in writes.items()},
        offsets={group_id: task.result() for group_id, task in offsets.items()},
    )


def offsets_text(offsets: Offsets) -> str:
    """Return partitions with their offsets, and how many more there are."""
    named = [f"{at}: {offsets[at]}" for at in sorted(offsets)[:_NAMED_MAX]]
    rest = len(offsets) - len(named)
    return ", ".join(named) + (f", and {rest} more" if rest else "")


async def _first_write(
    admin: Admin, at: TopicPartition, producer: tuple[int, int]
) -> FirstWrite | SemelError | None:
    try:
        described = await admin.operators.describe_producers(at)
    except SemelError as error:
        return error
    for each in described.producers:
        for opened in each.open_transactions:
            if (each.producer_id, opened.producer_epoch) == producer:
                return FirstWrite(
                    partition=at, first_offset=opened.first_offset, time_ms=opened.start_time_ms
                )
    return None


async def _offsets(admin: Admin, group_id: str, producer: tuple[int, int]) -> Offsets | SemelError:
    try:
        described = await admin.describe_group(group_id)
    except GroupIdNotFoundError:
        return {}  # The transaction has named the group, and sent it no offset yet.
    except SemelError as error:
        return error
    for each in described.pending:
        if (each.producer_id, each.producer_epoch) == producer:
            return each.offsets
    return {}
