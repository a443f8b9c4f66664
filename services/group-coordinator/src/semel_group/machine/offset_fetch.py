"""A group's position, as readers ask for it (protocol.md, section 7)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from semel_common.errors import SemelError, UnstableOffsetCommitError
from semel_common.ids import GroupId, TopicPartition
from semel_group.machine.offsets.state import GroupOffsets
from semel_group.machine.topics import Topics
from semel_group.machine.values import (
    FetchedOffset,
    FetchedOffsets,
    NamedPartition,
    TopicName,
)
from semel_runtime.participant.inquiry import OpenTransactionAt

NO_OFFSET = -1

Holders: TypeAlias = Mapping[TopicPartition, frozenset[OpenTransactionAt[GroupId]]]
"""The open transactions that may move a group, by partition."""


class OffsetsPage(NamedTuple):
    """A part of the partitions of a group, which are in the order of topic id and number."""

    after: TopicPartition | None = None
    """Behind which partition it begins; None: at the first one."""
    limit: int | None = None
    """How many it has at the most."""


def holders(group_id: str, group: GroupOffsets) -> Holders:
    """Return which open transactions may move a group."""
    found: dict[TopicPartition, frozenset[OpenTransactionAt[GroupId]]] = {}
    for transaction, pending in group.pending.items():
        holder = frozenset({OpenTransactionAt(GroupId(group_id), *transaction)})
        for partition in pending.partitions():
            found[partition] = found.get(partition, frozenset()) | holder
    return found


def fetch_named(
    group: GroupOffsets, held: Holders, topics: Topics, asked: Iterable[NamedPartition]
) -> FetchedOffsets:
    """Answer the partitions that were asked for, in their order."""
    offsets: list[FetchedOffset] = []
    unstable: set[OpenTransactionAt[GroupId]] = set()
    for name, number in asked:
        try:
            partition = topics.partition(name, number)
        except SemelError as error:
            offsets.append(_nothing(name, number, error.as_value()))
            continue
        full_name = topics.name_of(partition.topic_id)
        offsets.append(_fetched(group, held, full_name, partition))
        unstable |= held.get(partition, frozenset())
    return FetchedOffsets(offsets=tuple(offsets), unstable=frozenset(unstable))


def fetch_all(
    group: GroupOffsets,
    held: Holders,
    topics: Topics,
    page: OffsetsPage | None = None,
) -> FetchedOffsets:
    """Answer a page of the partitions of which the group has a position, or may get one."""
    after, limit = page or OffsetsPage()
    behind = (each for each in {*group.committed, *held} if after is None or each > after)
    known = [each for each in sorted(behind) if topics.exists(each.topic_id)][:limit]
    asked = [NamedPartition(topics.name_of(each.topic_id), each.partition) for each in known]
    return fetch_named(group, held, topics, asked)


def _fetched(
    group: GroupOffsets, held: Holders, name: TopicName, partition: TopicPartition
) -> FetchedOffset:
    if partition in held:
        open_count = len(held[partition])
        unstable = UnstableOffsetCommitError(
            f"{open_count} open transactions may move partition {partition.partition} "
            f"of topic {name.topic!r}"
        )
        return _nothing(name, partition.partition, unstable)
    current = group.committed.get(partition)
    return FetchedOffset(
        topic=name,
        partition=partition.partition,
        committed_offset=NO_OFFSET if current is None else current[1].committed_offset,
        metadata="" if current is None else current[1].metadata,
    )


def _nothing(name: TopicName, partition: int, error: SemelError) -> FetchedOffset:
    return FetchedOffset(
        topic=name, partition=partition, committed_offset=NO_OFFSET, metadata="", error=error
    )
