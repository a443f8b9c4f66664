"""Records of one partition."""

from dataclasses import replace

from starlette.responses import Response

from semel_console.insight.offset_views import Watermarks
from semel_console.pages.asks.record_scan import scan, transactions_of
from semel_console.pages.partition import marks_at, partition_of
from semel_console.views.blocks import Missing
from semel_console.views.record_views.message_view import (
    COMMITTED,
    ISOLATIONS,
    RECORDS_MAX,
    ScannedRecords,
    WantedRecords,
    messages_page,
)
from semel_console.web.visit import BadAddressError, Visit


async def show(visit: Visit) -> Response:
    """Show records from an offset on; without one, the newest. Raises SemelError."""
    at = partition_of(visit)
    topic = await visit.admin.describe_topic(at.topic)
    if at.partition >= len(topic.partitions):
        raise BadAddressError(f"topic {at.topic!r} has no partition {at.partition}")
    isolation = visit.choice("isolation", ISOLATIONS)
    marks = await visit.ask("The offsets", marks_at(visit, at))
    wanted = WantedRecords(
        at=at,
        start=_start(visit.number("start"), marks, isolation),
        isolation=isolation,
        text=visit.text("text"),
        one=bool(visit.text("one")),
    )
    scanned: ScannedRecords | Missing = Missing(what="The records", why="their offsets are unknown")
    if isinstance(marks, Watermarks):
        scanned = await visit.ask("The records", scan(visit, topic, wanted, marks))
    if isinstance(scanned, ScannedRecords):
        scanned = replace(scanned, transactions=await transactions_of(visit, scanned))
    return visit.show(messages_page(wanted, marks, scanned))


def _start(given: int | None, marks: Watermarks | Missing, isolation: str) -> int:
    if isinstance(marks, Missing):
        return given or 0
    if given is not None:
        return max(given, marks.start)
    end = marks.stable_end if isolation == COMMITTED else marks.end
    return max(marks.start, end - RECORDS_MAX)
