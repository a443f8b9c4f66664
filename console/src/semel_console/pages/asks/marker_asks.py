"""Which instances owe the markers of a transaction, and whether each of them answers."""

import asyncio
from collections.abc import Awaitable

from aiosemel import OffsetSpec, TopicPartition, TransactionalIdDescription
from aiosemel.errors import AuthorizationError, SemelError
from semel_console.views.blocks import Missing
from semel_console.web.clients import API_TIMEOUT_MS
from semel_console.web.visit import Visit

_PROBE_S = API_TIMEOUT_MS / 1000 + 0.3
"""How long an instance is waited for: the client gives up before that, and names the instance."""
_ASKED_MAX = 16
"""The partitions, and the groups, of one transaction whose instances are asked."""


async def owing(
    visit: Visit, described: TransactionalIdDescription | Missing, epoch: int | None
) -> dict[TopicPartition | str, str]:
    """Return who owes a marker, by partition and group id: a name, and whether it answers."""
    if isinstance(described, Missing):
        return {}
    owed = [each.missing_markers for each in described.transactions if each.producer_epoch == epoch]
    partitions = [at for each in owed for at in each.partitions][:_ASKED_MAX]
    groups = [group_id for each in owed for group_id in each.group_ids][:_ASKED_MAX]
    leaders = await _leaders(visit, partitions)
    async with asyncio.TaskGroup() as tasks:
        asked: dict[TopicPartition | str, asyncio.Task[str]] = {
            at: tasks.create_task(
                _answers(visit, name, visit.admin.list_offsets({at: OffsetSpec.LATEST}))
            )
            for at, name in leaders.items()
        }
        for group_id in groups:
            asked[group_id] = tasks.create_task(
                _answers(
                    visit, "the coordinator of the group", visit.admin.describe_group(group_id)
                )
            )
    return {each: task.result() for each, task in asked.items()}


async def _leaders(visit: Visit, partitions: list[TopicPartition]) -> dict[TopicPartition, str]:
    """Return the names of the brokers that lead partitions, as far as they are known."""
    if not partitions:
        return {}
    topics = await visit.ask(
        "Leaders", visit.admin.describe_topics({at.topic for at in partitions})
    )
    if isinstance(topics, Missing):
        return {}
    leaders: dict[TopicPartition, str] = {}
    for at in partitions:
        topic = topics.topics.get(at.topic)
        if topic is not None and at.partition < len(topic.partitions):
            leaders[at] = f"broker-{topic.partitions[at.partition].leader_id}"
    return leaders


async def _answers(visit: Visit, name: str, question: Awaitable[object]) -> str:
    """Return the name of an instance, and whether it answers a question."""
    try:
        async with asyncio.timeout(_PROBE_S):
            await question
    except TimeoutError:
        return f"{name}, which does not answer"
    except AuthorizationError:
        return f"{name}, which answers"  # It has refused: it is there.
    except SemelError as error:
        if error.code.name.endswith("_NOT_FOUND"):
            return f"{name}, which answers"
        return f"{visit.instances.name_of(error) or name}, which does not answer"
    return f"{name}, which answers"
