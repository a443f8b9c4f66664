"""One partition: its offsets, the holder of its last stable offset, its producers. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiosemel import (
    PartitionDescription,
    PartitionProducers,
    ProducerDescription,
    TopicPartition,
)
from semel_console.insight.command_lines import command_line
from semel_console.insight.holders import Holder
from semel_console.insight.offset_views import Watermarks
from semel_console.insight.texts import counted, time_text
from semel_console.views import places
from semel_console.views.blocks import (
    Block,
    Facts,
    Grid,
    Missing,
    Notice,
    Page,
    Row,
    Section,
    Tone,
    cell,
    link,
)
from semel_console.views.record_views.aborted_view import AbortedRanges, aborted_section


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPartition:
    """What the cluster answered about a partition."""

    at: TopicPartition
    described: PartitionDescription
    marks: Watermarks | Missing
    holder: Holder | Missing | None
    waiting: int | Missing
    """Records at and behind the last stable offset, of whatever transaction."""
    producers: PartitionProducers | Missing
    aborted: AbortedRanges


def partition_page(asked: AskedPartition) -> Page:
    """Return a partition: why its last stable offset stands where it stands."""
    at = asked.at
    return Page(
        title=str(at),
        command=command_line("transactions", "describe-producers", names=(at.topic, at.partition)),
        trail=(link("Topics", "/topics"), link(at.topic, places.topic(at.topic))),
        notices=_notices(asked),
        sections=(
            Section(title="", blocks=(*_unknown_holder(asked), _facts(asked))),
            aborted_section(at, asked.aborted),
            Section(title="Producers", blocks=(_producers(asked.producers),)),
        ),
    )


def _notices(asked: AskedPartition) -> Sequence[Notice]:
    marks, holder = asked.marks, asked.holder
    if isinstance(marks, Missing):
        return ()
    if marks.end == marks.stable_end:
        text = "No transaction holds the last stable offset: readers of committed records see all."
        return (Notice(text=text, tone=Tone.GOOD),)
    behind = "" if isinstance(asked.waiting, Missing) else f"{counted(asked.waiting, 'record')} "
    wait = f"{behind}from offset {marks.stable_end} on" if behind else "records"
    if isinstance(holder, Missing):
        text = (
            "A transaction holds the last stable offset. Readers of committed records do not see"
            f" {wait}."
        )
        return (Notice(text=text, tone=Tone.WARN),)
    if holder is None:
        text = f"A transaction has just ended here; {wait} become visible now."
        return (Notice(text=text, tone=Tone.WARN),)
    return (
        Notice(
            text=f"The last stable offset is held by {holder.name}"
            f" ({holder.how_long}). Readers of committed records do not see {wait}.",
            tone=Tone.WARN,
            links=(link("The transaction", _transaction(holder)),)
            if holder.transactional_id
            else (),
        ),
    )


def _unknown_holder(asked: AskedPartition) -> Sequence[Missing]:
    """Return why the holder is not known, where there is one."""
    marks = asked.marks
    is_held = isinstance(marks, Missing) or marks.end > marks.stable_end
    return (asked.holder,) if is_held and isinstance(asked.holder, Missing) else ()


def _transaction(holder: Holder) -> str:
    return places.transaction(holder.transactional_id, holder.producer_epoch, holder.producer_id)


def _facts(asked: AskedPartition) -> Block:
    marks = asked.marks
    if isinstance(marks, Missing):
        return marks
    described, at = asked.described, asked.at
    return Facts(
        pairs=(
            ("Leader", cell(f"broker-{described.leader_id}")),
            ("Leader epoch", cell(described.leader_epoch)),
            ("Log start offset", cell(marks.start)),
            ("Last stable offset", cell(marks.stable_end)),
            ("High watermark", cell(marks.end)),
            ("Records", link("show the newest", places.messages(at))),
            ("New records", link("follow", places.tail(at.topic, at.partition))),
            (
                "Open and aborted records too",
                link("show all of the newest", places.messages(at, isolation="read_uncommitted")),
            ),
        )
    )


def _producers(known: PartitionProducers | Missing) -> Block:
    if isinstance(known, Missing):
        return known
    return Grid(
        headings=("Producer id", "Epoch", "Last sequence", "Last heard of", "Open from offset"),
        numbers=frozenset({0, 1, 2, 4}),
        rows=[_producer(each) for each in known.producers],
        empty="No producer is known.",
    )


def _producer(each: ProducerDescription) -> Row:
    opened = ", ".join(str(epoch.first_offset) for epoch in each.open_transactions)
    return Row(
        cells=(
            cell(each.producer_id),
            cell(each.producer_epoch),
            cell(each.last_sequence),
            cell(time_text(each.last_timestamp_ms)),
            cell(opened or None, Tone.WARN),
        ),
        tone=Tone.WARN if each.open_transactions else Tone.PLAIN,
    )
