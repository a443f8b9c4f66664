"""The topics, and one topic."""

import asyncio

from starlette.responses import Response

from aiosemel import TopicPartition
from semel_console.insight.holders import holder_of
from semel_console.pages.asks.partition_asks import marks_of
from semel_console.views.topic_view import PARTITIONS_MAX, topic_page, topics_page
from semel_console.web.visit import Visit

_HOLDERS_MAX = 20
"""The partitions of one page that are asked for the holder of their last stable offset."""


async def show_list(visit: Visit) -> Response:
    """Show the topics."""
    listed = await visit.ask("The list", visit.admin.list_topics())
    return visit.show(topics_page(listed, visit.text("q"), visit.text("after")))


async def show_one(visit: Visit) -> Response:
    """Show a topic; raises SemelError if there is none of this name."""
    described = await visit.admin.describe_topic(visit.needed("name"))
    after = visit.number("after")
    rest = [each for each in described.partitions if after is None or each.partition > after]
    shown = rest[:PARTITIONS_MAX]
    marks = await marks_of(visit, described.name, shown)
    held = [number for number, each in marks.known.items() if each.end > each.stable_end]
    async with asyncio.TaskGroup() as group:
        asked = {
            number: group.create_task(
                visit.ask(
                    "The holder", holder_of(visit.admin, TopicPartition(described.name, number))
                )
            )
            for number in held[:_HOLDERS_MAX]
        }
    holders = {
        number: holder for number, task in asked.items() if (holder := task.result()) is not None
    }
    return visit.show(topic_page(described, shown, marks.known, holders, marks.missing))
