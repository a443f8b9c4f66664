"""Questions about partitions that several pages have: offsets by leader, and holders."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from aiosemel import PartitionDescription, SemelClient, TopicPartition
from semel_console.insight.offset_views import Watermarks, watermarks
from semel_console.views.blocks import Missing
from semel_console.web.visit import Visit


@dataclass(slots=True)
class Marks:
    """Where partitions begin and end, as far as their brokers answered."""

    known: dict[int, Watermarks] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)


async def marks_of(visit: Visit, topic: str, shown: Iterable[PartitionDescription]) -> Marks:
    """Return where partitions begin and end; a broker that is away takes no other's answer away."""
    by_leader: defaultdict[int, list[int]] = defaultdict(list)
    for each in shown:
        by_leader[each.leader_id].append(each.partition)
    async with asyncio.TaskGroup() as group:
        asked = {
            leader: group.create_task(
                visit.ask(
                    f"The offsets on broker-{leader}",
                    watermarks(visit.client, [(topic, number) for number in numbers]),
                )
            )
            for leader, numbers in by_leader.items()
        }
    marks = Marks()
    for leader, task in asked.items():
        answer = task.result()
        if isinstance(answer, Missing):
            marks.missing.append(answer)
        else:
            marks.known |= dict(zip(by_leader[leader], answer, strict=True))
    return marks


async def exists(client: SemelClient, at: TopicPartition) -> PartitionDescription | None:
    """Return a partition; None: the topic has no such number. Raises for an unknown topic."""
    described = await client.admin().describe_topic(at.topic)
    return next((each for each in described.partitions if each.partition == at.partition), None)
