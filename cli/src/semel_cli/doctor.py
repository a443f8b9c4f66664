"""`semel doctor`: what is wrong with the transactions of a cluster, and what to do about it."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli import findings
from semel_cli.findings import Finding, Thresholds
from semel_cli.options import seconds
from semel_cli.output import Format, FormatOption, Json, Table, examples, note, show
from semel_cli.session import BootstrapOption, with_client

if TYPE_CHECKING:
    from aiosemel import OpenTransactions, SemelClient, TransactionListing

EXAMPLES = examples(
    "semel doctor",
    "semel doctor --stuck-after 20 --format json || page somebody",
)

EXIT_FOUND = 3
"""Neither a failure nor a wrong command line: monitoring can tell."""

_OPEN_MAX = 1_000


def doctor(
    stuck_after: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", callback=seconds, help="Open somewhere although it is decided."
        ),
    ] = 60,
    late_after: Annotated[
        float,
        typer.Option(metavar="SECONDS", callback=seconds, help="Decided, and markers are missing."),
    ] = 30,
    prepared_after: Annotated[float, typer.Option(metavar="SECONDS", callback=seconds)] = 3_600,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Look for transactions that are stuck, late, nearly timed out, or prepared for long.

    Also for instances that do not answer, moves of partitions that wait for one, ids that
    producers take from one another, and ids that are used once. Says what to do about each.
    Status 3: something was found.
    """
    limits = Thresholds(
        stuck_ms=int(stuck_after * 1000),
        late_ms=int(late_after * 1000),
        prepared_ms=int(prepared_after * 1000),
    )
    found = with_client(bootstrap, lambda client: _examine(client, limits))
    show(
        output_format,
        [_document(each) for each in found],
        Table(
            headings=("Check", "What is wrong", "What to do"),
            rows=[(each.check, each.what, each.do) for each in found],
            empty="Nothing is wrong.",
        ),
    )
    if found:
        raise typer.Exit(EXIT_FOUND)


async def _examine(client: "SemelClient", limits: Thresholds) -> list[Finding]:
    admin = client.admin()
    opened: OpenTransactions = await admin.operators.list_open_transactions(limit=_OPEN_MAX)
    listed: tuple[TransactionListing, ...] = await admin.list_transactions()
    moving = await admin.moves.list_partition_reassignments()
    now_ms = time.time_ns() // 1_000_000
    if opened.truncated:
        note(f"more than {_OPEN_MAX} transactions are open: looked at the oldest")
    return [
        *findings.unreachable(opened),
        *findings.waiting_moves(moving, opened),
        *findings.stuck(opened.transactions, limits),
        *findings.late_markers(listed, limits, now_ms),
        *findings.prepared_for_long(listed, limits, now_ms),
        *findings.nearly_timed_out(opened.transactions, limits),
        *findings.duels(listed),
        *findings.churn(listed, limits, now_ms),
    ]


def _document(found: Finding) -> Json:
    return {"check": found.check, "what": found.what, "do": found.do}
