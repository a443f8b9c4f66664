"""One transaction that is open, or lacks markers: its steps and its participants. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiosemel import (
    TopicPartition,
    TransactionClient,
    TransactionDescription,
)
from semel_console.insight.open_writes import UNDECIDED, FirstWrite, Offsets, offsets_text
from semel_console.insight.texts import time_text
from semel_console.views import places
from semel_console.views.blocks import (
    NOTHING,
    Block,
    Cell,
    Facts,
    Grid,
    Missing,
    Row,
    Section,
    Tone,
    badge,
    cell,
    link,
)
from semel_console.views.ended_view import DECIDED, Step, timeline
from semel_console.views.states import age, transaction_state

_EMPTY = "The coordinator knows no participant yet: a short transaction names them at its end."


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answers of the participants of a transaction."""

    owing: Mapping[TopicPartition | str, str] = field(default_factory=dict)
    """The instances that owe its markers, by partition and group id."""
    writes: Sequence[FirstWrite | Missing] = ()
    """While it is open."""
    offsets: Mapping[str, Offsets | Missing] = field(default_factory=dict)
    """The offsets that it is to commit, by group id, while it is open."""


def unfinished_sections(
    chosen: TransactionDescription,
    client: TransactionClient | None,
    told: Told,
    trace: Cell,
    now_ms: int,
) -> Sequence[Section]:
    """Return all that the coordinator and the participants have of a transaction."""
    facts = [
        ("State", transaction_state(chosen.state)),
        ("Began", cell(time_text(chosen.start_time_ms or 0))),
        ("Age", age(chosen.start_time_ms, now_ms)),
        ("Prepared", cell(time_text(chosen.prepared_time_ms or 0))),
        ("Decided", cell(time_text(chosen.decided_time_ms or 0))),
        ("Written by", cell(None if client is None else str(client))),
        ("Trace", trace),
    ]
    is_open = chosen.state in UNDECIDED
    wrote_to = _open(chosen, told) if is_open else _decided(chosen, told, now_ms)
    return (
        Section(title="This transaction", blocks=(Facts(pairs=facts),)),
        Section(
            title="Timeline",
            blocks=(
                _timeline(chosen, told, now_ms),
                *(write for write in told.writes if isinstance(write, Missing)),
            ),
        ),
        Section(title="Partitions and groups", blocks=wrote_to),
    )


def _open(chosen: TransactionDescription, told: Told) -> Sequence[Block]:
    """Return the participants of an open transaction, and the offsets that it holds."""
    undecided = badge("not decided", Tone.PLAIN)
    rows = [
        Row(cells=(_partition(at), undecided, NOTHING)) for at in chosen.participants.partitions
    ] + [
        Row(cells=(_group(each), undecided, _offsets(told.offsets.get(each))))
        for each in chosen.participants.group_ids
    ]
    headings = ("Partition or group", "Marker", "Offsets to commit")
    return (
        Grid(headings=headings, rows=rows, empty=_EMPTY),
        *(each for each in told.offsets.values() if isinstance(each, Missing)),
    )


def _offsets(offsets: Offsets | Missing | None) -> Cell:
    if offsets is None or isinstance(offsets, Missing):
        return NOTHING
    return cell(offsets_text(offsets) or "none yet")


def _decided(chosen: TransactionDescription, told: Told, now_ms: int) -> Sequence[Block]:
    """Return the participants of a decided transaction, and who owes the markers."""
    missing = {*chosen.missing_markers.partitions, *chosen.missing_markers.group_ids}
    rows = [
        Row(
            cells=(
                _partition(at),
                *_marker(chosen, at in missing, now_ms),
                cell(told.owing.get(at)),
            )
        )
        for at in chosen.participants.partitions
    ] + [
        Row(
            cells=(
                _group(each),
                *_marker(chosen, each in missing, now_ms),
                cell(told.owing.get(each)),
            )
        )
        for each in chosen.participants.group_ids
    ]
    headings = ("Partition or group", "Marker", "Owed for", "Owed by")
    return (Grid(headings=headings, rows=rows, empty=_EMPTY),)


def _partition(at: TopicPartition) -> Cell:
    return link(str(at), places.partition(at))


def _group(group_id: str) -> Cell:
    return link(f"group {group_id}", places.group(group_id))


def _marker(chosen: TransactionDescription, is_missing: bool, now_ms: int) -> tuple[Cell, Cell]:
    """Return the state of a participant's marker, and for how long it has been missing."""
    if not is_missing:
        return badge("written", Tone.GOOD), NOTHING
    return badge("missing", Tone.BAD), age(chosen.decided_time_ms, now_ms)


def _timeline(chosen: TransactionDescription, told: Told, now_ms: int) -> Block:
    began_ms = chosen.start_time_ms
    steps: list[Step] = []
    if began_ms:
        steps.append(Step(at_ms=began_ms, what=cell("registered with its coordinator")))
    steps += [
        Step(
            at_ms=write.time_ms,
            what=link(
                f"first write to {write.partition}, offset {write.first_offset}",
                places.messages(
                    write.partition, start=write.first_offset, isolation="read_uncommitted"
                ),
            ),
        )
        for write in told.writes
        if not isinstance(write, Missing)
    ]
    if chosen.prepared_time_ms:
        what = cell("prepared: the outside system decides")
        steps.append(Step(at_ms=chosen.prepared_time_ms, what=what))
    if chosen.decided_time_ms:
        steps.append(Step(at_ms=chosen.decided_time_ms, what=cell(DECIDED), is_decision=True))
    steps.append(Step(at_ms=now_ms, what=cell("now")))
    return timeline(sorted(steps, key=lambda step: step.at_ms))
