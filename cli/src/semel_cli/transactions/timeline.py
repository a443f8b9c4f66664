"""`semel transactions timeline`: the steps of one transaction, and the longest of them."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import CommandError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.options import INT64_MAX
from semel_cli.shared.output import (
    Facts,
    Format,
    FormatOption,
    Json,
    Table,
    examples,
    show,
)
from semel_cli.transactions.history import ended_document, operator_text, place_text
from semel_cli.transactions.views import client_text
from semel_console.insight.texts import duration_text, time_text

if TYPE_CHECKING:
    from aiosemel import EndedTransaction, PartitionWrites, SemelClient, TopicPartition
    from aiosemel.errors import SemelError
    from semel_console.insight.ended_writes import Writes

EXAMPLES = examples(
    "semel transactions timeline orders-1 41",
    "semel transactions timeline orders-1 41 --format json",
)


class Step(NamedTuple):
    """Something that has happened in a transaction."""

    name: str
    time_ms: int
    phase: str
    """What lies between the step before and this one; empty: nothing that takes time."""


def timeline(
    transactional_id: Annotated[str, typer.Argument(show_default=False)],
    producer_epoch: Annotated[
        int, typer.Argument(min=0, max=INT64_MAX, metavar="EPOCH", show_default=False)
    ],
    producer_id: Annotated[
        int | None,
        typer.Option(min=1, max=INT64_MAX, help="Of the transaction.", show_default="any"),
    ] = None,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Show when a transaction that has ended began, was decided, and reached each participant.

    Coordinators keep it for a day, or for less if there are many; brokers look for its records in
    the first 16 partitions. `describe` shows an open one.
    """

    async def work(client: "SemelClient") -> "list[tuple[EndedTransaction, Writes]]":
        from aiosemel import HistoryFilter
        from semel_console.insight.ended_writes import ended_writes

        wanted = HistoryFilter(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        admin = client.admin()
        ended = (await admin.transaction_history(wanted)).transactions
        return [(each, await ended_writes(admin, each)) for each in ended]

    found = with_client(bootstrap, work)
    if not found:
        raise CommandError(
            f"the history has no transaction of epoch {producer_epoch} of {transactional_id!r}:"
            " `semel transactions outcome` says whether it is open, or how it ended"
        )
    show(
        output_format,
        [_document(*each) for each in found],
        *(block for each in found for block in (_facts(*each), _steps(*each), _written(each[1]))),
    )


def steps_of(ended: "EndedTransaction", writes: "Writes") -> list[Step]:
    """Return the known steps in the order of their times."""
    steps = [*_known_steps(ended), *_first_writes(ended, writes)]
    return sorted(steps, key=lambda step: step.time_ms)


def longest_of(steps: list[Step]) -> tuple[Step, int] | None:
    """Return the step before which most time has passed, with that time; None: no time passed."""
    waits = [(after, after.time_ms - before.time_ms) for before, after in pairwise(steps)]
    longest = max(waits, key=lambda each: each[1], default=None)
    return longest if longest is not None and longest[1] > 0 else None


def _known_steps(ended: "EndedTransaction") -> Iterator[Step]:
    if ended.start_time_ms is not None:
        yield Step("registered with its coordinator", ended.start_time_ms, "")
    if ended.prepared_time_ms is not None:
        yield Step("prepared", ended.prepared_time_ms, "open")
    if ended.decided_time_ms is not None:
        name = f"decided: {ended.outcome}"
        phase = "open" if ended.prepared_time_ms is None else "prepared, waiting for its owner"
        yield Step(name, ended.decided_time_ms, phase)
    for each in ended.participants:
        if each.marker_time_ms is not None:
            place = place_text(each)
            yield Step(f"marker written: {place}", each.marker_time_ms, f"marker of {place}")
    if ended.completed_time_ms is not None:
        yield Step("complete", ended.completed_time_ms, "")


def _first_writes(ended: "EndedTransaction", writes: "Writes") -> Iterator[Step]:
    from aiosemel import PartitionWrites
    from semel_console.insight.ended_writes import first_write_ms

    for each in writes.values():
        if isinstance(each, PartitionWrites) and (time_ms := first_write_ms(ended, each)):
            name = f"first write: {each.partition}, offset {each.first_offset}"
            yield Step(name, time_ms, "")


def _facts(ended: "EndedTransaction", writes: "Writes") -> Facts:
    steps = steps_of(ended, writes)
    longest = longest_of(steps)
    whole_ms = steps[-1].time_ms - steps[0].time_ms if steps else 0
    return Facts(
        {
            "Transactional id": ended.transactional_id,
            "Producer id": ended.producer_id,
            "Epoch": ended.producer_epoch,
            "Joint version": ended.txn_version,
            "Outcome": ended.outcome,
            "Reason": ended.abort_reason,
            "Ended by": operator_text(ended),
            "Client": client_text(ended.client),
            "Trace": ended.traceparent or None,
            "Partitions and groups": ended.participant_count,
            "Took": duration_text(whole_ms),
            "Longest step": None
            if longest is None
            else f"{longest[0].phase or longest[0].name}: {duration_text(longest[1])},"
            f" {100 * longest[1] // whole_ms} %",
        }
    )


def _written(writes: "Writes") -> Table:
    from aiosemel import PartitionWrites

    return Table(
        headings=("Partition", "Records", "First offset", "Last offset", "Marker"),
        rows=[
            (str(at), each.record_count, each.first_offset, each.last_offset, each.marker_offset)
            if isinstance(each, PartitionWrites)
            else (str(at), str(each), None, None, None)
            for at, each in writes.items()
        ],
        empty="It wrote to no partition.",
    )


def _steps(ended: "EndedTransaction", writes: "Writes") -> Table:
    steps = steps_of(ended, writes)
    return Table(
        headings=("Time", "After", "Step"),
        rows=[
            (
                time_text(step.time_ms),
                duration_text(step.time_ms - steps[0].time_ms),
                step.name,
            )
            for step in steps
        ],
        empty="No step has a known time.",
    )


def _document(ended: "EndedTransaction", writes: "Writes") -> Json:
    steps = steps_of(ended, writes)
    longest = longest_of(steps)
    return {
        "transaction": ended_document(ended),
        "writes": [_write_document(at, each) for at, each in writes.items()],
        "steps": [{"name": step.name, "time_ms": step.time_ms} for step in steps],
        "longest_step": None
        if longest is None
        else {"name": longest[0].phase or longest[0].name, "duration_ms": longest[1]},
    }


def _write_document(at: "TopicPartition", each: "PartitionWrites | SemelError") -> Json:
    from aiosemel import PartitionWrites

    place: dict[str, Json] = {"topic": at.topic, "partition": at.partition}
    if not isinstance(each, PartitionWrites):
        return {**place, "error": str(each)}
    return {
        **place,
        "record_count": each.record_count,
        "first_offset": each.first_offset,
        "last_offset": each.last_offset,
        "first_timestamp_ms": each.first_timestamp_ms,
        "marker_offset": each.marker_offset,
    }
