"""`semel transactions`: list, describe; the other commands have modules of their own."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli import outcomes
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
from semel_cli.session import BootstrapOption, UsageError, with_client

if TYPE_CHECKING:
    from aiosemel import SemelClient
    from aiosemel.descriptions import (
        Participants,
        TransactionalIdDescription,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )

app = typer.Typer(help="List and describe transactions.", no_args_is_help=True)


@app.command(
    "list",
    epilog=examples(
        "semel transactions list",
        "semel transactions list --state Ongoing --running-longer-than 60",
        "semel transactions list --id-pattern 'orders-.*' --format json",
    ),
)
def list_transactions(
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort;"
            " may be given more than once.",
            show_default="any",
        ),
    ] = None,
    producer_id: Annotated[
        list[int] | None,
        typer.Option(help="May be given more than once.", show_default="any"),
    ] = None,
    running_longer_than: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, show_default="any")
    ] = None,
    id_pattern: Annotated[
        str,
        typer.Option(
            metavar="REGEX",
            help="What the whole transactional id must match.",
            show_default="any",
        ),
    ] = "",
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """List transactional ids, with the transaction that each is in."""
    longer_ms = None if running_longer_than is None else int(running_longer_than * 1000)

    async def work(client: "SemelClient") -> "tuple[TransactionListing, ...]":
        return await client.admin().list_transactions(
            states=[_state(each) for each in state or ()],
            producer_ids=producer_id or (),
            running_longer_than_ms=longer_ms,
            transactional_id_pattern=id_pattern,
        )

    _show_list(with_client(bootstrap, work), output_format)


@app.command(epilog=examples("semel transactions describe orders-1"))
def describe(
    transactional_id: Annotated[str, typer.Argument(show_default=False)],
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Describe a transactional id: its transactions that are open, or whose markers are missing."""
    described = with_client(
        bootstrap, lambda client: client.admin().describe_transactions(transactional_id)
    )
    show(
        output_format,
        _document(described),
        Facts(
            {
                "Transactional id": described.transactional_id,
                "Producer id": described.producer_id,
                "Epoch": described.producer_epoch,
                "Timeout": duration_text(described.transaction_timeout_ms),
            }
        ),
        Table(
            headings=("Epoch", "State", "Started", "Age", "Wrote to", "Markers missing", "Reason"),
            rows=[
                (
                    each.producer_epoch,
                    each.state,
                    time_text(each.start_time_ms or 0),
                    _age(each.start_time_ms),
                    _names(each.participants),
                    _names(each.missing_markers),
                    each.abort_reason,
                )
                for each in described.transactions
            ],
            empty="No transaction is open, and no marker is missing.",
        ),
    )


app.command(epilog=outcomes.EXAMPLES)(outcomes.outcome)


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
            }
            for each in listed
        ],
        Table(
            headings=("Transactional id", "Producer id", "Epoch", "State", "Age", "Incomplete"),
            rows=[
                (
                    each.transactional_id,
                    each.producer_id,
                    each.producer_epoch,
                    each.state,
                    _age(each.start_time_ms),
                    each.incomplete_transactions,
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
    }


def _transaction(each: "TransactionDescription") -> Json:
    return {
        "producer_epoch": each.producer_epoch,
        "state": each.state,
        "start_time_ms": each.start_time_ms,
        "participants": _participants(each.participants),
        "missing_markers": _participants(each.missing_markers),
        "abort_reason": each.abort_reason or None,
        "traceparent": each.traceparent or None,
    }


def _participants(participants: "Participants") -> Json:
    return {
        "partitions": [
            {"topic": each.topic, "partition": each.partition} for each in participants.partitions
        ],
        "group_ids": list(participants.group_ids),
    }


def _names(participants: "Participants") -> str:
    groups = (f"group {group_id}" for group_id in participants.group_ids)
    return ", ".join((*map(str, participants.partitions), *groups))


def _age(start_time_ms: int | None) -> str | None:
    if not start_time_ms:
        return None
    return duration_text(max(0, time.time_ns() // 1_000_000 - start_time_ms))


def _state(text: str) -> "TransactionState":
    from aiosemel.descriptions import TransactionState

    for state in TransactionState:
        if state.lower() == text.lower():
            return state
    raise UsageError(f"state {text!r} is none of {', '.join(TransactionState)}")
