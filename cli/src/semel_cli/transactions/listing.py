"""`semel transactions`: list, describe; the other commands have modules of their own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.documents import document
from semel_cli.shared.options import INT64_MAX, not_empty, seconds
from semel_cli.shared.output import (
    Facts,
    Format,
    FormatOption,
    Json,
    Table,
    examples,
    note,
    show,
)
from semel_cli.shared.partial_lists import Listed, listed_in_part
from semel_cli.transactions import ending, history, outcome, timeline
from semel_cli.transactions.complete import EXAMPLES as COMPLETE_EXAMPLES
from semel_cli.transactions.complete import complete
from semel_cli.transactions.joint_ids import joint_facts, joint_writers
from semel_cli.transactions.resolve import EXAMPLES as RESOLVE_EXAMPLES
from semel_cli.transactions.resolve import resolve
from semel_cli.transactions.views import (
    age_text,
    client_document,
    client_text,
    names,
    transaction_document,
)
from semel_console.insight.texts import duration_text, time_text

if TYPE_CHECKING:
    from aiosemel import (
        SemelClient,
        TransactionalIdDescription,
        TransactionListing,
        TransactionState,
    )

OldestFirstOption = Annotated[
    bool,
    typer.Option(
        "--oldest-first", help="By the age of transactions; without it, by transactional id."
    ),
]
BehindOption = Annotated[
    str | None,
    typer.Option(
        metavar="POSITION",
        help="The entries that follow this one: --format json names its position.",
        callback=not_empty,
        show_default=False,
    ),
]

app = typer.Typer(help="List and describe transactions, and end open ones.", no_args_is_help=True)
app.command(epilog=COMPLETE_EXAMPLES)(complete)
app.command(epilog=RESOLVE_EXAMPLES)(resolve)


@app.command(
    "list",
    epilog=examples(
        "semel transactions list",
        "semel transactions list --state Ongoing --running-longer-than 60",
        "semel transactions list --state prepared",
        "semel transactions list --oldest-first --limit 20",
        "semel transactions list --id-pattern 'orders-.*' --format json",
    ),
)
def list_transactions(  # noqa: PLR0913, PLR0917 - each option is an argument
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="Empty, Ongoing, Prepared, PrepareCommit, PrepareAbort, CompleteCommit or"
            " CompleteAbort; may be given more than once.",
            show_default="any",
        ),
    ] = None,
    producer_id: Annotated[
        list[int] | None,
        typer.Option(min=1, max=INT64_MAX, help="May be given more than once.", show_default="any"),
    ] = None,
    running_longer_than: Annotated[
        float | None, typer.Option(metavar="SECONDS", callback=seconds, show_default="any")
    ] = None,
    id_pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="A pattern in RE2's syntax that the whole transactional id must match.",
            callback=not_empty,
            show_default="any",
        ),
    ] = None,
    oldest_first: OldestFirstOption = False,
    limit: Annotated[int | None, typer.Option(min=1, max=INT64_MAX, show_default="all")] = None,
    behind: BehindOption = None,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """List transactional ids, each with its present transaction and its prepared ones."""
    from aiosemel import TransactionOrder

    longer_ms = None if running_longer_than is None else int(running_longer_than * 1000)
    states = [_state(each) for each in state or ()]

    async def work(client: "SemelClient") -> "Listed[tuple[TransactionListing, ...]]":
        asked = client.admin().list_transactions(
            states=states,
            producer_ids=producer_id or (),
            running_longer_than_ms=longer_ms,
            transactional_id_pattern=id_pattern or "",
            order=TransactionOrder.OLDEST_FIRST if oldest_first else TransactionOrder.BY_ID,
            limit=limit,
            behind=behind,
        )
        return await listed_in_part(asked)

    listed = with_client(bootstrap, work)
    entries = listed.entries
    if len(entries) == limit:
        note(f"there may be more: see --limit, or go on with --behind '{entries[-1].position}'")
    _show_list(entries, output_format)
    listed.check()


@app.command(epilog=examples("semel transactions describe orders-1"))
def describe(
    transactional_id: Annotated[str, typer.Argument(show_default=False)],
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Describe a transactional id: its transactions that are open, or whose markers are missing.

    For an id of joint transactions also its versions, and the writers of the open version.
    """
    described = with_client(
        bootstrap, lambda client: client.admin().describe_transactions(transactional_id)
    )
    joint = described.joint
    blocks = (_facts(described),) if joint is None else (joint_facts(described, joint),)
    writers = () if joint is None or joint.open_version is None else (joint_writers(joint),)
    show(output_format, _document(described), *blocks, *writers, _transactions(described))


def _facts(described: "TransactionalIdDescription") -> Facts:
    return Facts(
        {
            "Transactional id": described.transactional_id,
            "Producer id": described.producer_id,
            "Epoch": described.producer_epoch,
            "Timeout": duration_text(described.transaction_timeout_ms),
            "Client": client_text(described.client),
        }
    )


def _transactions(described: "TransactionalIdDescription") -> Table:
    is_joint = described.joint is not None
    headings = ("Epoch", "State", "Started", "Age", "Wrote to", "Markers missing", "Reason")
    rows = [
        (
            transaction.producer_epoch,
            transaction.state,
            time_text(transaction.start_time_ms or 0),
            age_text(transaction.start_time_ms),
            names(transaction.participants),
            names(transaction.missing_markers),
            transaction.abort_reason,
        )
        for transaction in described.transactions
    ]
    producer_ids = [transaction.producer_id for transaction in described.transactions]
    return Table(
        headings=("Producer id", *headings) if is_joint else headings,
        rows=[(who, *row) for who, row in zip(producer_ids, rows, strict=True)]
        if is_joint
        else rows,
        empty="No transaction is open, and no marker is missing.",
    )


app.command(epilog=outcome.EXAMPLES)(outcome.outcome)
app.command(epilog=history.EXAMPLES)(history.history)
app.command(epilog=timeline.EXAMPLES)(timeline.timeline)
app.command(epilog=ending.FIND_HANGING_EXAMPLES)(ending.find_hanging)
app.command(epilog=ending.ABORT_EXAMPLES)(ending.abort)
app.command(epilog=ending.FENCE_EXAMPLES)(ending.fence)
app.command(epilog=ending.DESCRIBE_PRODUCERS_EXAMPLES)(ending.describe_producers)


def _show_list(listed: "Sequence[TransactionListing]", output_format: Format) -> None:
    show(
        output_format,
        [
            {
                "transactional_id": entry.transactional_id,
                "producer_id": entry.producer_id,
                "producer_epoch": entry.producer_epoch,
                "state": entry.state,
                "start_time_ms": entry.start_time_ms,
                "incomplete_transactions": entry.incomplete_transactions,
                "joint_writers": entry.joint_writers,
                "position": entry.position,
            }
            for entry in listed
        ],
        Table(
            headings=(
                *("Transactional id", "Producer id", "Epoch", "State", "Age", "Incomplete"),
                "Joint writers",
            ),
            rows=[
                (
                    entry.transactional_id,
                    entry.producer_id or None,  # Of joint transactions, each writer has its own.
                    entry.producer_epoch if entry.producer_id else None,
                    entry.state,
                    age_text(entry.start_time_ms),
                    entry.incomplete_transactions,
                    entry.joint_writers or None,
                )
                for entry in listed
            ],
            empty="No transactional ids match.",
        ),
    )


def _document(described: "TransactionalIdDescription") -> Json:
    return {
        "transactional_id": described.transactional_id,
        "producer_id": described.producer_id,
        "producer_epoch": described.producer_epoch,
        "transaction_timeout_ms": described.transaction_timeout_ms,
        "client": client_document(described.client),
        "transactions": [transaction_document(each) for each in described.transactions],
        "joint": None if described.joint is None else document(described.joint),
    }


def _state(text: str) -> "TransactionState":
    from aiosemel import TransactionState

    known = [state for state in TransactionState if state is not TransactionState.UNKNOWN]
    for state in known:
        if state.lower() == text.lower():
            return state
    raise UsageError(f"state {text!r} is none of {', '.join(known)}")
