"""One transaction that has ended: where its time went, who wrote it, who ended it. No I/O."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from aiosemel import EndedParticipant, EndedTransaction, PartitionWrites, TopicPartition
from semel_console.insight.ended_writes import first_write_ms
from semel_console.insight.texts import counted, duration_text, time_text
from semel_console.views import places
from semel_console.views.blocks import (
    Cell,
    Facts,
    Grid,
    Missing,
    Notice,
    Row,
    Section,
    Tone,
    badge,
    cell,
    link,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One moment in the life of a transaction."""

    at_ms: int
    what: Cell
    is_decision: bool = False
    """Whether the transaction is decided now: until then, its program or its owner is at work."""


DECIDED = "decided"
Writes: TypeAlias = Mapping[TopicPartition, PartitionWrites | Missing]
"""What brokers have found of a transaction, by partition."""


def ended_sections(ended: EndedTransaction, trace: Cell, writes: Writes) -> Sequence[Section]:
    """Return all that the history and the brokers have of a transaction."""
    steps = _steps(ended, writes)
    notices = [*_operator(ended), *_longest(steps)]
    missing = [each for each in writes.values() if isinstance(each, Missing)]
    return (
        Section(title="This transaction", blocks=(*notices, _facts(ended, trace))),
        Section(title="Timeline", blocks=(timeline(steps),)),
        Section(title="Partitions and groups", blocks=(_participants(ended, writes), *missing)),
    )


def _operator(ended: EndedTransaction) -> Sequence[Notice]:
    operator = ended.operator
    if operator is None:
        return ()
    who = operator.name or "an operator without a name"
    known = f" ({operator.principal})" if operator.principal else ""
    where = f" from {operator.address}" if operator.address else ""
    when = time_text(ended.decided_time_ms or ended.completed_time_ms or 0)
    why = f"The reason: {operator.reason}" if operator.reason else "No reason was given."
    return (Notice(text=f"Ended by hand: {who}{known}{where}, {when}. {why}", tone=Tone.WARN),)


def _facts(ended: EndedTransaction, trace: Cell) -> Facts:
    client = ended.client
    pairs = [
        ("Producer id", cell(ended.producer_id)),
        ("Epoch", cell(ended.producer_epoch)),
        ("Began", cell(time_text(ended.start_time_ms or 0))),
        ("Completed", cell(time_text(ended.completed_time_ms or 0))),
        ("Written by", cell(None if client is None else str(client))),
        ("Trace", trace),
    ]
    if ended.txn_version is not None:
        pairs.append(("Joint version", cell(ended.txn_version)))
    return Facts(pairs=pairs)


def _name(each: EndedParticipant) -> Cell:
    if each.partition is not None:
        return link(str(each.partition), places.partition(each.partition))
    group_id = each.group_id or ""
    return link(f"group {group_id}", places.group(group_id))


def _steps(ended: EndedTransaction, writes: Writes) -> Sequence[Step]:
    """Return the known moments of a transaction, in their order."""
    steps = [
        Step(at_ms=at_ms, what=cell(what), is_decision=what == DECIDED)
        for at_ms, what in (
            (ended.start_time_ms, "registered with its coordinator"),
            (ended.prepared_time_ms, "prepared"),
            (ended.decided_time_ms, DECIDED),
        )
        if at_ms
    ]
    steps += [
        Step(at_ms=at_ms, what=_first_write(each))
        for each in writes.values()
        if not isinstance(each, Missing) and (at_ms := first_write_ms(ended, each))
    ]
    steps += [
        Step(at_ms=each.marker_time_ms, what=_marker(each))
        for each in ended.participants
        if each.marker_time_ms
    ]
    if ended.completed_time_ms:
        steps.append(Step(at_ms=ended.completed_time_ms, what=cell("complete")))
    return sorted(steps, key=lambda step: step.at_ms)


def _first_write(writes: PartitionWrites) -> Cell:
    return link(
        f"first write to {writes.partition}, offset {writes.first_offset}", _records(writes)
    )


def _records(writes: PartitionWrites) -> str:
    return places.messages(
        writes.partition, start=writes.first_offset, isolation="read_uncommitted"
    )


def _marker(each: EndedParticipant) -> Cell:
    name = _name(each)
    return link(f"marker of {name.text}", name.href)


def _longest(steps: Sequence[Step]) -> Sequence[Notice]:
    """Return the step that took longest, and the one that made the commit or abort slow."""
    if len(steps) <= 1:
        return ()
    at = longest_at(steps)
    if not at:
        return (Notice(text="All its steps lie within one millisecond."),)
    notices = [Notice(text=f"The longest step: {_share(steps, at)}.")]
    decided = _decided_at(steps)
    if at <= decided:
        late = longest_at(steps[decided:])
        text = "After the decision, all steps lie within one millisecond."
        if late:
            text = f"After the decision, the longest step: {_share(steps[decided:], late)}."
        notices.append(Notice(text=text))
    return notices


def longest_at(steps: Sequence[Step]) -> int:
    """Return which step has the longest time before it; 0: no time passed between the steps."""
    took = [after.at_ms - before.at_ms for before, after in itertools.pairwise(steps)]
    longest_ms = max(took, default=0)
    return took.index(longest_ms) + 1 if longest_ms else 0


def _share(steps: Sequence[Step], at: int) -> str:
    """Return how long a step took, of all of them together."""
    before, after = steps[at - 1], steps[at]
    took_ms, whole_ms = after.at_ms - before.at_ms, steps[-1].at_ms - steps[0].at_ms
    return (
        f"{duration_text(took_ms)} of {duration_text(whole_ms)} ({100 * took_ms // whole_ms} %),"
        f" from \u201c{before.what.text}\u201d to \u201c{after.what.text}\u201d"
    )


def _decided_at(steps: Sequence[Step]) -> int:
    """Return which step is the decision; 0: none is, or the first one."""
    return next((at for at, step in enumerate(steps) if step.is_decision), 0)


def timeline(steps: Sequence[Step]) -> Grid:
    """Return the moments of a transaction, with bars.

    The longest step is marked; of a decided transaction, the longest one after its decision.
    """
    first_ms = steps[0].at_ms if steps else 0
    whole_ms = max(1, steps[-1].at_ms - first_ms) if steps else 1
    took = [
        0,
        *(after.at_ms - before.at_ms for before, after in itertools.pairwise(steps)),
    ]
    decided = _decided_at(steps)
    late = longest_at(steps[decided:])
    marked = decided + late if late else None
    return Grid(
        headings=("Time", "Step", "Took", "Since its begin"),
        numbers=frozenset({2, 3}),
        rows=[
            Row(
                cells=(
                    cell(time_text(step.at_ms)),
                    step.what,
                    cell(duration_text(took_ms)),
                    Cell(
                        text=duration_text(step.at_ms - first_ms),
                        share=(step.at_ms - first_ms) / whole_ms,
                        is_neutral=True,
                    ),
                ),
                tone=Tone.WARN if at == marked else Tone.PLAIN,
            )
            for at, (step, took_ms) in enumerate(zip(steps, took, strict=True))
        ],
        empty="The coordinator knows no time of any step.",
    )


def _participants(ended: EndedTransaction, writes: Writes) -> Grid:
    rows = [
        Row(
            cells=(
                _name(each),
                badge("commit", Tone.GOOD) if each.commits else badge("abort", Tone.BAD),
                cell(time_text(each.marker_time_ms or 0)),
                *_written(each, writes),
            )
        )
        for each in ended.participants
    ]
    rest = ended.participant_count - len(rows)
    if rest > 0:
        rows.append(Row(cells=(cell(f"and {counted(rest, 'other')}"), *[cell(None)] * 4)))
    return Grid(
        headings=("Partition or group", "Marker", "Written at", "Records", "Offsets"),
        numbers=frozenset({3}),
        rows=rows,
        empty="It wrote nothing.",
    )


def _written(each: EndedParticipant, writes: Writes) -> tuple[Cell, Cell]:
    """Return how many records a partition has of the transaction, and where they are."""
    found = None if each.partition is None else writes.get(each.partition)
    if found is None or isinstance(found, Missing):
        return cell(None), cell(None)
    if found.first_offset is None:
        return cell(0), cell("none found")
    return (
        cell(found.record_count),
        link(f"{found.first_offset} to {found.last_offset}", _records(found)),
    )
