"""Questions about the offsets of a group: broker by broker, for one of them may be away."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiosemel import Admin, TopicPartition
from semel_console.insight.offset_views import GroupOffset, committed_offsets, offsets_from
from semel_console.views.blocks import Missing
from semel_console.web.visit import Visit


@dataclass(slots=True)
class GroupLag:
    """How far a group is, as far as brokers answered."""

    committed: Mapping[TopicPartition, int]
    offsets: list[GroupOffset] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)


async def lag_of(visit: Visit, group_id: str) -> GroupLag:
    """Return how far a group is; a broker that is away takes no other's answer away.

    Raises SemelError if the group coordinator or the coordinators do not answer.
    """
    committed = await committed_offsets(visit.client, group_id)
    by_leader: defaultdict[int | None, dict[TopicPartition, int]] = defaultdict(dict)
    leaders = await _leaders(visit.admin, committed)
    for each, offset in committed.items():
        by_leader[leaders.get(each)][each] = offset
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(visit.ask(_name(leader), offsets_from(visit.client, those)))
            for leader, those in by_leader.items()
        ]
    lag = GroupLag(committed=committed)
    for task in tasks:
        answer = task.result()
        if isinstance(answer, Missing):
            lag.missing.append(answer)
        else:
            lag.offsets += answer
    lag.offsets.sort(key=lambda each: each.partition)
    return lag


async def _leaders(
    admin: Admin, committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    described = await admin.describe_topics(sorted({each.topic for each in committed}))
    return {
        TopicPartition(topic.name, each.partition): each.leader_id
        for topic in described.topics.values()
        for each in topic.partitions
    }


def _name(leader: int | None) -> str:
    return "The lag where no broker leads" if leader is None else f"The lag on broker-{leader}"
