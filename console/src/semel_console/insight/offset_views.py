"""Offsets of partitions and groups, as commands show them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiosemel import IsolationLevel, OffsetSpec, TopicPartition

if TYPE_CHECKING:
    from aiosemel import SemelClient

Partitions = Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermarks:
    """Where a partition begins and ends."""

    start: int
    stable_end: int
    """The last stable offset: how far readers of committed records see."""
    end: int
    """The high watermark."""


async def watermarks(client: "SemelClient", partitions: Partitions) -> list[Watermarks]:
    """Return where each partition begins and ends, in the order asked."""
    asked = [TopicPartition(*partition) for partition in partitions]
    starts = await _ends(client, asked, OffsetSpec.EARLIEST)
    stable_ends = await _ends(client, asked, isolation_level=IsolationLevel.READ_COMMITTED)
    ends = await _ends(client, asked)
    return [
        Watermarks(start=starts[question], stable_end=stable_ends[question], end=ends[question])
        for question in asked
    ]


async def _ends(
    client: "SemelClient",
    partitions: Iterable[TopicPartition],
    spec: OffsetSpec = OffsetSpec.LATEST,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    asked = dict.fromkeys(partitions, spec)
    found = await client.admin().list_offsets(asked, isolation_level=isolation_level)
    return {each: at.offset for each, at in found.items() if at is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """How far a group is in a partition."""

    partition: TopicPartition
    committed: int
    stable_end: int
    lag: int
    """Records that the group has yet to read. Markers and aborted records do not count."""
    oldest_ms: int | None
    """The time of the first of them, in milliseconds since 1970-01-01 UTC; None: not known."""


async def group_offsets(client: "SemelClient", group_id: str) -> list[GroupOffset]:
    """Return how far a group is, wherever it has committed an offset."""
    return await offsets_from(client, await committed_offsets(client, group_id))


async def committed_offsets(client: "SemelClient", group_id: str) -> dict[TopicPartition, int]:
    """Return what a group has committed; an open transaction may still change it."""
    answered = await client.admin().list_consumer_group_offsets(group_id)
    return {each: known.offset for each, known in answered.items() if known is not None}


async def offsets_from(
    client: "SemelClient", committed: Mapping[TopicPartition, int]
) -> list[GroupOffset]:
    """Return how far a group with such offsets is."""
    ends = await _ends(client, committed, isolation_level=IsolationLevel.READ_COMMITTED)
    lags = await client.admin().measure_lag(committed)
    return [
        GroupOffset(
            partition=each,
            committed=offset,
            stable_end=ends[each],
            lag=lags[each].records,
            oldest_ms=lags[each].oldest_ms,
        )
        for each, offset in sorted(committed.items())
    ]
