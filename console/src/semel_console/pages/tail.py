"""The newest records of a topic, as they come."""

import asyncio
from dataclasses import replace

from starlette.responses import RedirectResponse, Response

from aiosemel import IsolationLevel, TopicDescription, TopicPartition
from semel_console.insight.offset_views import Watermarks
from semel_console.pages.asks.partition_asks import marks_of
from semel_console.pages.asks.record_scan import scan, transactions_of
from semel_console.views.blocks import Missing
from semel_console.views.record_views.message_view import (
    COMMITTED,
    ISOLATIONS,
    RECORDS_MAX,
    ScannedRecords,
    WantedRecords,
)
from semel_console.views.record_views.tail_view import (
    PARTITIONS_MAX,
    FollowedPartition,
    WantedTail,
    newest_of,
    tail_address,
    tail_page,
)
from semel_console.web.visit import BadAddressError, Visit


async def show(visit: Visit) -> Response:
    """Show what has come since the tail began; without a begin, begin at the ends of the logs.

    Raises SemelError if there is no such topic.
    """
    topic = await visit.admin.describe_topic(visit.needed("topic"))
    number = visit.number("partition")
    if number is not None and number >= len(topic.partitions):
        raise BadAddressError(f"topic {topic.name!r} has no partition {number}")
    wanted = WantedTail(
        topic=topic.name,
        partition=number,
        isolation=visit.choice("isolation", ISOLATIONS),
        since=_since(visit.text("since")),
    )
    shown = [each for each in topic.partitions if number in {None, each.partition}]
    marks = await marks_of(visit, topic.name, shown[:PARTITIONS_MAX])
    if not wanted.since and marks.known:
        ends = {number: _end(wanted, each) for number, each in marks.known.items()}
        return RedirectResponse(tail_address(wanted, ends), status_code=303)
    async with asyncio.TaskGroup() as tasks:
        asked = {
            number: tasks.create_task(
                visit.ask(f"Partition {number}", _follow(visit, topic, wanted, number, each))
            )
            for number, each in marks.known.items()
            if number in wanted.since
        }
    answers = {number: task.result() for number, task in asked.items()}
    followed = {
        number: each for number, each in answers.items() if isinstance(each, FollowedPartition)
    }
    missing = [each for each in answers.values() if isinstance(each, Missing)]
    followed = await _with_transactions(visit, followed)
    return visit.show(
        tail_page(wanted, len(topic.partitions), followed, [*marks.missing, *missing])
    )


def _since(text: str) -> dict[int, int]:
    """Read where a tail began, such as ``0-12_1-7``; raises BadAddressError."""
    since: dict[int, int] = {}
    for part in text.split("_") if text else ():
        number, dash, offset = part.partition("-")
        if not (dash and _is_number(number) and _is_number(offset)):
            raise BadAddressError(f"since is {text!r}, and not of the form 0-12_1-7")
        since[int(number)] = int(offset)
    return since


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) < 1 << 63


def _end(wanted: WantedTail, marks: Watermarks) -> int:
    return marks.stable_end if wanted.isolation == COMMITTED else marks.end


async def _follow(
    visit: Visit, topic: TopicDescription, wanted: WantedTail, number: int, marks: Watermarks
) -> FollowedPartition:
    """Read the newest records of one partition, as many as one page has at most."""
    at = TopicPartition(topic.name, number)
    since = wanted.since[number]
    asked = WantedRecords(
        at=at,
        start=max(since, _end(wanted, marks) - RECORDS_MAX, marks.start),
        isolation=wanted.isolation,
        text="",
        one=False,
    )
    isolation = IsolationLevel(wanted.isolation)
    counts = await visit.admin.count_records({at: since}, isolation_level=isolation)
    scanned = await scan(visit, topic, asked, marks)
    return FollowedPartition(marks=marks, scanned=scanned, came=counts[at])


async def _with_transactions(
    visit: Visit, followed: dict[int, FollowedPartition]
) -> dict[int, FollowedPartition]:
    """Return the same, with the transactions that wrote the records of the page."""
    shown = newest_of(followed)
    writers = {
        at: writer
        for at, each in enumerate(shown)
        if (writer := followed[each.partition].scanned.writers.get(each.offset))
    }
    asked = ScannedRecords(records=shown, writers=writers, scanned=0, next_offset=0)
    transactions = await transactions_of(visit, asked)
    return {
        number: replace(each, scanned=replace(each.scanned, transactions=transactions))
        for number, each in followed.items()
    }
