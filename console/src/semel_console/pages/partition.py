"""One partition."""

import asyncio

from starlette.responses import Response

from aiosemel import Admin, IsolationLevel, TopicPartition
from semel_console.insight.holders import holder_of
from semel_console.insight.offset_views import Watermarks, watermarks
from semel_console.pages.asks.aborted_asks import aborted_in
from semel_console.pages.asks.partition_asks import exists
from semel_console.views.blocks import Missing
from semel_console.views.partition_view import AskedPartition, partition_page
from semel_console.web.visit import BadAddressError, Visit

_PRODUCERS_MAX = 100


async def show(visit: Visit) -> Response:
    """Show a partition; raises SemelError if there is no such topic."""
    at = partition_of(visit)
    described = await exists(visit.client, at)
    if described is None:
        raise BadAddressError(f"topic {at.topic!r} has no partition {at.partition}")
    admin = visit.admin
    async with asyncio.TaskGroup() as group:
        marks = group.create_task(visit.ask("The offsets", marks_at(visit, at)))
        holder = group.create_task(visit.ask("The holder", holder_of(admin, at)))
        aborted = group.create_task(aborted_in(visit, at))
        producers = group.create_task(
            visit.ask("The producers", admin.operators.describe_producers(at, limit=_PRODUCERS_MAX))
        )
    known = marks.result()
    waiting: int | Missing = known if isinstance(known, Missing) else 0
    if isinstance(known, Watermarks) and known.end > known.stable_end:
        waiting = await visit.ask("The count", _waiting(admin, at, known.stable_end))
    asked = AskedPartition(
        at=at,
        described=described,
        marks=known,
        holder=holder.result(),
        waiting=waiting,
        producers=producers.result(),
        aborted=aborted.result(),
    )
    return visit.show(partition_page(asked))


def partition_of(visit: Visit) -> TopicPartition:
    """Return the partition that an address names; raises BadAddressError."""
    number = visit.number("partition")
    if number is None:
        raise BadAddressError("the address names no partition")
    return TopicPartition(visit.needed("topic"), number)


async def marks_at(visit: Visit, at: TopicPartition) -> Watermarks:
    """Return where a partition begins and ends."""
    (marks,) = await watermarks(visit.client, [at])
    return marks


async def _waiting(admin: Admin, at: TopicPartition, stable_end: int) -> int:
    counts = await admin.count_records(
        {at: stable_end}, isolation_level=IsolationLevel.READ_UNCOMMITTED
    )
    return counts[at]
