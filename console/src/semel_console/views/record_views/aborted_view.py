"""The transactions that were aborted in a partition: readers of committed records skip them."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiosemel import EndedTransaction, PartitionWrites, TopicPartition
from semel_console.insight.texts import time_text
from semel_console.views import places
from semel_console.views.blocks import Cell, Grid, Missing, Notice, Row, Section, Tone, cell, link


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedRange:
    """One aborted transaction, and where its records in the partition are."""

    ended: EndedTransaction
    writes: PartitionWrites | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedRanges:
    """The last aborted transactions that the coordinators know, if they answered."""

    known: Sequence[AbortedRange]
    missing: Sequence[Missing]


def aborted_section(at: TopicPartition, aborted: AbortedRanges) -> Section:
    """Return the last aborted transactions of a partition, with the offsets of each."""
    title = "Aborted here: readers of committed records skip these offsets"
    if aborted.missing and not aborted.known:
        return Section(title=title, blocks=aborted.missing)
    grid = Grid(
        headings=("Offsets", "Marker", "Records", "Transaction", "Reason", "Completed"),
        numbers=frozenset({1, 2}),
        rows=[_row(each) for each in aborted.known],
        empty="The history of the last day has no transaction that was aborted here.",
    )
    if not aborted.known:
        return Section(title=title, blocks=(grid,))
    href = places.address("/history", outcome="ABORTED", topic=at.topic)
    others = Notice(
        text="Other partitions of the topic:", links=(link("all that were aborted", href),)
    )
    return Section(title=title, blocks=(*aborted.missing, grid, others))


def _row(each: AbortedRange) -> Row:
    ended = each.ended
    name, epoch = ended.transactional_id, ended.producer_epoch
    return Row(
        cells=(
            *_offsets(each.writes),
            link(f"{name}, epoch {epoch}", places.transaction(name, epoch, ended.producer_id)),
            cell(ended.abort_reason),
            cell(time_text(ended.completed_time_ms or 0)),
        )
    )


def _offsets(writes: PartitionWrites | Missing) -> tuple[Cell, Cell, Cell]:
    if isinstance(writes, Missing):
        return cell(writes.why, Tone.BAD), cell(None), cell(None)
    if writes.first_offset is None:
        return cell("none found"), cell(writes.marker_offset), cell(0)
    href = places.messages(
        writes.partition, start=writes.first_offset, isolation="read_uncommitted"
    )
    return (
        link(f"{writes.first_offset} to {writes.last_offset}", href),
        cell(writes.marker_offset),
        cell(writes.record_count),
    )
