"""`semel transactions`: list, describe; the other commands have modules of their own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli import operators, outcomes
from semel_cli.joint import joint_document, joint_facts, joint_writers
from semel_cli.options import INT64_MAX, not_empty, seconds
from semel_cli.output import (
    Facts,
    Format,
    FormatOption,
    Json,
    Table,
    duration_text,
    examples,
    show,
    time_text,
)
from semel_cli.prepared import EXAMPLES as COMPLETE_EXAMPLES
from semel_cli.prepared import complete
from semel_cli.session import BootstrapOption, UsageError, with_client
from semel_cli.transaction_views import age_text, names, participants_document

if TYPE_CHECKING:
    from aiosemel import SemelClient
    from aiosemel.descriptions import (
        TransactionalIdDescription,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )

app = typer.Typer(
    help="Look into transactions, and end those that stay open.", no_args_is_help=True
)
app.command(epilog=COMPLETE_EXAMPLES)(complete)


@app.command(
    "list",
    epilog=examples(
        "semel transactions list",
        "semel transactions list --state Ongoing --running-longer-than 60",
        "semel transactions list --state prepared",
        "semel transactions list --id-pattern 'orders-.*' --format json",
    ),
)
def list_transactions(
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
            help="What the whole transactional id must match.",
            callback=not_empty,
            show_default="any",
        ),
    ] = None,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """List transactional ids, with the transaction that each is in, and those that are prepared."""
    longer_ms = None if running_longer_than is None else int(running_longer_than * 1000)
    states = [_state(each) for each in state or ()]

    async def work(client: "SemelClient") -> "tuple[TransactionListing, ...]":
        return await client.admin().list_transactions(
            states=states,
            producer_ids=producer_id or (),
            running_longer_than_ms=longer_ms,
            transactional_id_pattern=id_pattern or "",
        )

    _show_list(with_client(bootstrap, work), output_format)


@app.command(epilog=examples("semel transactions describe orders-1"))
def describe(
    transactional_id: Annotated[str, typer.Argument(show_default=False)],
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Describe a transactional id: its transactions that are open, or whose markers are missing.

    Of an id of joint transactions also its versions, and the writers of the one that is open.
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
        }
    )


def _transactions(described: "TransactionalIdDescription") -> Table:
    is_joint = described.joint is not None
    headings = ("Epoch", "State", "Started", "Age", "Wrote to", "Markers missing", "Reason")
    rows = [
        (
            each.producer_epoch,
            each.state,
            time_text(each.start_time_ms or 0),
            age_text(each.start_time_ms),
            names(each.participants),
            names(each.missing_markers),
            each.abort_reason,
        )
        for each in described.transactions
    ]
    producer_ids = [each.producer_id for each in described.transactions]
    return Table(
        headings=("Producer id", *headings) if is_joint else headings,
        rows=[(who, *row) for who, row in zip(producer_ids, rows, strict=True)]
        if is_joint
        else rows,
        empty="No transaction is open, and no marker is missing.",
    )


app.command(epilog=outcomes.EXAMPLES)(outcomes.outcome)
app.command(epilog=operators.FIND_HANGING_EXAMPLES)(operators.find_hanging)
app.command(epilog=operators.ABORT_EXAMPLES)(operators.abort)
app.command(epilog=operators.FENCE_EXAMPLES)(operators.fence)
app.command(epilog=operators.DESCRIBE_PRODUCERS_EXAMPLES)(operators.describe_producers)


def _show_list(listed: "Sequence[TransactionListing]", output_format: Format) -> None:
    show(
        output_format,
        [
            {
                "transactional_id": each.transactional_id,
                "producer_id": each.producer_id,
                "producer_epoch": each.producer_epoch,
                "state": each.state,
                "start_time_ms": each.start_time_ms,
                "incomplete_transactions": each.incomplete_transactions,
                "joint_writers": each.joint_writers,
            }
            for each in listed
        ],
        Table(
            headings=(
                *("Transactional id", "Producer id", "Epoch", "State", "Age", "Incomplete"),
                "Joint writers",
            ),
            rows=[
                (
                    each.transactional_id,
                    each.producer_id or None,  # Of joint transactions, each writer has its own.
                    each.producer_epoch if each.producer_id else None,
                    each.state,
                    age_text(each.start_time_ms),
                    each.incomplete_transactions,
                    each.joint_writers or None,
                )
                for each in listed
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
        "transactions": [_transaction(each) for each in described.transactions],
        "joint": None if described.joint is None else joint_document(described.joint),
    }


def _transaction(each: "TransactionDescription") -> Json:
    return {
        "producer_id": each.producer_id or None,
        "producer_epoch": each.producer_epoch,
        "state": each.state,
        "start_time_ms": each.start_time_ms,
        "participants": participants_document(each.participants),
        "missing_markers": participants_document(each.missing_markers),
        "abort_reason": each.abort_reason,
        "traceparent": each.traceparent or None,
        "prepared_time_ms": each.prepared_time_ms,
    }


def _state(text: str) -> "TransactionState":
    from aiosemel.descriptions import TransactionState

    known = [state for state in TransactionState if state is not TransactionState.UNKNOWN]
    for state in known:
        if state.lower() == text.lower():
            return state
    raise UsageError(f"state {text!r} is none of {', '.join(known)}")
