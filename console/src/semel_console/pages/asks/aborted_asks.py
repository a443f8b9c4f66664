"""The transactions that were aborted in a partition, and where their records are."""

import asyncio

from aiosemel import HistoryFilter, KnownOutcome, TopicPartition
from aiosemel.errors import SemelError
from semel_console.insight.ended_writes import writes_in
from semel_console.views.blocks import Missing
from semel_console.views.record_views.aborted_view import AbortedRange, AbortedRanges
from semel_console.web.visit import Visit

_ABORTED_MAX = 5
"""The transactions of one page: the broker is asked for the records of each."""


async def aborted_in(visit: Visit, at: TopicPartition) -> AbortedRanges:
    """Return the last transactions of the history that were aborted in a partition."""
    wanted = HistoryFilter(outcome=KnownOutcome.ABORTED, topic=at.topic, partition=at.partition)
    history, missing = await visit.ask_everyone(
        "The aborted transactions", visit.admin.transaction_history(wanted, limit=_ABORTED_MAX)
    )
    if isinstance(history, Missing):
        return AbortedRanges(known=(), missing=(history,))
    async with asyncio.TaskGroup() as tasks:
        asked = [
            (each, tasks.create_task(writes_in(visit.admin, each, at)))
            for each in history.transactions
        ]
    known = [
        AbortedRange(
            ended=each,
            writes=visit.explain(f"The records in {at}", found)
            if isinstance(found := task.result(), SemelError)
            else found,
        )
        for each, task in asked
    ]
    return AbortedRanges(known=known, missing=missing)
