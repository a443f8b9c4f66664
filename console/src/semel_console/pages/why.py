"""Why a consumer sees no records."""

import asyncio

from starlette.responses import Response

from aiosemel import TopicPartition
from semel_console.views.why_view import PARTITIONS_MAX, why_page
from semel_console.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Show the first cause that holds for each partition of a topic, or for one of them."""
    group_id, topic, number = visit.text("group"), visit.text("topic"), visit.number("partition")
    if not (group_id and topic):
        return visit.show(why_page(group_id, topic, {}))
    partitions = [number] if number is not None else await _partitions(visit, topic)
    shown = partitions[:PARTITIONS_MAX]
    async with asyncio.TaskGroup() as tasks:
        asked = {
            at: tasks.create_task(
                visit.ask("The cause", visit.admin.operators.explain_reader(group_id, at))
            )
            for at in (TopicPartition(topic, each) for each in shown)
        }
    standings = {at: task.result() for at, task in asked.items()}
    return visit.show(
        why_page(group_id, topic, standings, only=number, goes_on=shown != partitions)
    )


async def _partitions(visit: Visit, topic: str) -> list[int]:
    """Return the partitions behind those of the page before."""
    after = visit.number("after")
    known = (await visit.admin.describe_topics([topic])).topics.get(topic)
    if known is None:
        return [0]  # Its cause says that there is no such topic.
    return [each.partition for each in known.partitions if after is None or each.partition > after]
