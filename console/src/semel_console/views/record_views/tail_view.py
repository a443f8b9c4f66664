"""The newest records of a topic, as they come: bounded, the last one first. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice

from aiosemel import ConsumerRecord, TopicPartition
from semel_console.insight.command_lines import command_line
from semel_console.insight.offset_views import Watermarks
from semel_console.insight.texts import counted
from semel_console.views import places
from semel_console.views.blocks import (
    Block,
    Field,
    Form,
    Grid,
    Missing,
    Notice,
    Page,
    Row,
    Section,
    Tone,
    link,
)
from semel_console.views.paging import fitting
from semel_console.views.record_views.message_view import (
    COMMITTED,
    ISOLATION_CHOICES,
    PREVIEW_BYTES,
    RECORDS_MAX,
    ScannedRecords,
    WantedRecords,
    record_row,
)

PARTITIONS_MAX = 16
"""The partitions that one page follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTail:
    """What the address asks for."""

    topic: str
    partition: int | None
    """None: the first ``PARTITIONS_MAX`` of the topic."""
    isolation: str
    since: Mapping[int, int]
    """Where the tail has begun, by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedPartition:
    """The records that a look has read of one partition."""

    marks: Watermarks
    scanned: ScannedRecords
    came: int
    """The records since the tail has begun."""


def tail_address(wanted: WantedTail, since: Mapping[int, int] | None = None) -> str:
    """Return the address of a tail; without ``since``, it begins at the end of the log."""
    given = "_".join(f"{number}-{offset}" for number, offset in sorted((since or {}).items()))
    return places.address(
        "/tail",
        topic=wanted.topic,
        partition=wanted.partition,
        isolation=None if wanted.isolation == COMMITTED else wanted.isolation,
        since=given or None,
    )


def newest_of(followed: Mapping[int, FollowedPartition]) -> list[ConsumerRecord]:
    """Return the records that one page has: the newest first, each partition in its own order."""
    newest = merge(
        *(reversed(each.scanned.records) for each in followed.values()),
        key=lambda record: -record.timestamp_ms,
    )
    return list(islice(newest, RECORDS_MAX))


def tail_page(
    wanted: WantedTail,
    partition_count: int,
    followed: Mapping[int, FollowedPartition],
    missing: Sequence[Missing],
) -> Page:
    """Return the newest records, and how many were dropped."""
    rows = fitting([_row(each, wanted, followed) for each in newest_of(followed)], RECORDS_MAX)
    came = sum(each.came for each in followed.values())
    blocks: list[Block] = [*missing, _summary(came, len(rows))]
    if wanted.partition is None and partition_count > PARTITIONS_MAX:
        text = (
            f"The first {PARTITIONS_MAX} of {partition_count} partitions are followed: a tail of"
            " one partition shows another."
        )
        blocks.append(Notice(text=text, tone=Tone.WARN))
    blocks.append(
        Grid(
            headings=(
                *("Partition", "Offset", "Time", "Key", "Value", "Headers", "Seen by readers"),
                "Transaction",
            ),
            numbers=frozenset({0, 1}),
            rows=rows,
            empty="Records appear here as they come.",
        )
    )
    return Page(
        title=_title(wanted),
        command=_command(wanted),
        trail=(link("Topics", "/topics"), link(wanted.topic, places.topic(wanted.topic))),
        form=_form(wanted),
        sections=(Section(title="", blocks=blocks),),
        more=link("Begin again at the end of the log", tail_address(wanted)),
    )


def _title(wanted: WantedTail) -> str:
    return f"Tail of {_place(wanted)}"


def _place(wanted: WantedTail) -> str:
    if wanted.partition is None:
        return wanted.topic
    return str(TopicPartition(wanted.topic, wanted.partition))


def _summary(came: int, shown: int) -> Notice:
    text = f"{counted(came, 'record')} came since the tail has begun"
    dropped = came - shown
    if dropped > 0:
        return Notice(
            text=f"{text}: the newest {shown} are shown, {dropped} older ones were dropped.",
            tone=Tone.WARN,
        )
    return Notice(text=f"{text}; none was dropped.")


def _row(
    each: ConsumerRecord, wanted: WantedTail, followed: Mapping[int, FollowedPartition]
) -> Row:
    at = TopicPartition(wanted.topic, each.partition)
    of_partition = followed[each.partition]
    asked = WantedRecords(at=at, start=each.offset, isolation=wanted.isolation, text="", one=True)
    row = record_row(each, asked, of_partition.scanned, of_partition.marks, PREVIEW_BYTES)
    return replace(row, cells=(link(each.partition, places.partition(at)), *row.cells))


def _form(wanted: WantedTail) -> Form:
    partition = "" if wanted.partition is None else str(wanted.partition)
    return Form(
        action="/tail",
        kept=(("topic", wanted.topic),),
        fields=(
            Field(name="partition", label="Partition", value=partition),
            Field(
                name="isolation",
                label="Show",
                value=wanted.isolation,
                choices=ISOLATION_CHOICES,
            ),
        ),
        button="Begin",
    )


def _command(wanted: WantedTail) -> str:
    options: list[str | int] = []
    if wanted.partition is not None:
        options += ["--partition", wanted.partition]
    if wanted.isolation != COMMITTED:
        options += ["--isolation", wanted.isolation]
    return command_line("consume", names=(wanted.topic,), options=options)
