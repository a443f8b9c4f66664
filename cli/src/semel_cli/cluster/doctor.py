"""`semel doctor`: what is wrong with a cluster and its transactions, and what to do about it."""

from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_session import with_client
from semel_cli.shared.options import seconds
from semel_cli.shared.output import Format, FormatOption, Json, Table, examples, note, show
from semel_console.insight.doctor_checks import Finding, Thresholds

if TYPE_CHECKING:
    from aiosemel import SemelClient

EXAMPLES = examples(
    "semel doctor",
    "semel doctor --stuck-after 20 --format json || page on-call",
)

EXIT_FOUND = 3
"""Neither a failure nor a wrong command line: monitoring can tell."""


def doctor(
    stuck_after: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", callback=seconds, help="Decided, but open at a participant."
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

    Also for instances that do not answer, disks that are nearly full, moves of partitions that
    wait for an instance, ids that producers take from one another, and ids that are used once.
    Says what to do about each.
    Status 3: the command found a problem.
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


async def _examine(client: "SemelClient", limits: Thresholds) -> "tuple[Finding, ...]":
    from semel_console.insight.examination import examine

    examined = await examine(client.admin(), limits)
    for remark in examined.remarks:
        note(remark)
    return examined.findings


def _document(found: Finding) -> Json:
    return {"check": found.check, "what": found.what, "do": found.do}
