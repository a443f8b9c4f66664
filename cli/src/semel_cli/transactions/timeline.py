"""`semel transactions timeline`: the steps of one transaction, and the longest of them."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

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
from semel_cli.transactions.history import ended_document, lasted_text, operator_text, place_text
from semel_cli.transactions.open_timeline import open_blocks, open_document, open_transactions
from semel_cli.transactions.timeline_steps import Step, in_order, steps_document, steps_table
from semel_cli.transactions.views import client_text
from semel_console.insight.texts import duration_text

if TYPE_CHECKING:
    from aiosemel import EndedTransaction, PartitionWrites, SemelClient, TopicPartition
    from aiosemel.errors import SemelError
    from semel_cli.transactions.open_timeline import OpenTransaction
    from semel_console.insight.ended_writes import Writes

EXAMPLES = examples(
    "semel transactions timeline orders-1 41",
    "semel transactions timeline orders-1 41 --format json",
)


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
    """Show when a transaction began, was decided, and reached each participant.

    Coordinators keep one that has ended for a day, or for less if there are many; brokers look for
    its records in the first 16 partitions. Of one that is open: where it began to write, and which
    offsets it is to commit, asked of its first 16 partitions and groups.
    """

    async def work(
        client: "SemelClient",
    ) -> "tuple[list[tuple[EndedTransaction, Writes]], list[OpenTransaction]]":
        from aiosemel import HistoryFilter
        from semel_console.insight.ended_writes import ended_writes

        wanted = HistoryFilter(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        admin = client.admin()
        ended = (await admin.transaction_history(wanted)).transactions
        if not ended:
            return [], await open_transactions(admin, transactional_id, producer_epoch, producer_id)
        return [(each, await ended_writes(admin, each)) for each in ended], []

    found, still_open = with_client(bootstrap, work)
    if not found and not still_open:
        raise CommandError(
            f"the history has no transaction of epoch {producer_epoch} of {transactional_id!r},"
            " and it is not open: `semel transactions outcome` says how it ended"
        )
    show(
        output_format,
        [*(_document(*each) for each in found), *map(open_document, still_open)],
        *(block for each in found for block in _blocks(*each)),
        *(block for each in still_open for block in open_blocks(each)),
    )


def steps_of(ended: "EndedTransaction", writes: "Writes") -> list[Step]:
    """Return the known steps in the order of their times."""
    return in_order([*_known_steps(ended), *_first_writes(ended, writes)])


def longest_of(steps: list[Step]) -> tuple[Step, int] | None:
    """Return the step before which most time has passed, with that time; None: no time passed."""
    waits = [(after, after.time_ms - before.time_ms) for before, after in pairwise(steps)]
    longest = max(waits, key=lambda each: each[1], default=None)
    return longest if longest is not None and longest[1] > 0 else None


def after_decision(ended: "EndedTransaction", steps: list[Step]) -> list[Step]:
    """Return the decision and the steps behind it: its program had no part in these any more."""
    at = next((at for at, step in enumerate(steps) if step.name == _decided(ended)), len(steps))
    return steps[at:]


def _decided(ended: "EndedTransaction") -> str:
    return f"decided: {ended.outcome}"


def _known_steps(ended: "EndedTransaction") -> Iterator[Step]:
    if ended.start_time_ms is not None:
        yield Step("registered with its coordinator", ended.start_time_ms, "")
    if ended.prepared_time_ms is not None:
        yield Step("prepared", ended.prepared_time_ms, "open")
    if ended.decided_time_ms is not None:
        phase = "open" if ended.prepared_time_ms is None else "prepared, waiting for its owner"
        yield Step(_decided(ended), ended.decided_time_ms, phase)
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


def _blocks(ended: "EndedTransaction", writes: "Writes") -> tuple[Table | Facts, ...]:
    return _facts(ended, writes), steps_table(steps_of(ended, writes)), _written(writes)


def _facts(ended: "EndedTransaction", writes: "Writes") -> Facts:
    steps = steps_of(ended, writes)
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
            "Took": lasted_text(ended),
            "From the first step to the last": duration_text(whole_ms),
            "Longest step": _longest_text(steps),
            "Longest after the decision": _longest_text(after_decision(ended, steps)),
        }
    )


def _longest_text(steps: list[Step]) -> str | None:
    longest = longest_of(steps)
    if longest is None:
        return None
    step, took_ms = longest
    share = 100 * took_ms // (steps[-1].time_ms - steps[0].time_ms)
    return f"{step.phase or step.name}: {duration_text(took_ms)}, {share} %"


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


def _document(ended: "EndedTransaction", writes: "Writes") -> Json:
    steps = steps_of(ended, writes)
    return {
        "transaction": ended_document(ended),
        "writes": [_write_document(at, each) for at, each in writes.items()],
        "steps": steps_document(steps),
        "longest_step": _longest_document(longest_of(steps)),
        "longest_step_after_decision": _longest_document(longest_of(after_decision(ended, steps))),
    }


def _longest_document(longest: tuple[Step, int] | None) -> Json:
    if longest is None:
        return None
    step, took_ms = longest
    return {"name": step.phase or step.name, "duration_ms": took_ms}


def _write_document(at: "TopicPartition", each: "PartitionWrites | SemelError") -> Json:
    from aiosemel import PartitionWrites

    place: dict[str, Json] = at._asdict()
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
