"""`semel transactions outcome`: how one transaction ended."""

from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_session import with_client
from semel_cli.shared.options import INT64_MAX
from semel_cli.shared.output import Facts, Format, FormatOption, Json, examples, show
from semel_console.insight.texts import duration_text

if TYPE_CHECKING:
    from aiosemel import TransactionOutcomeDescription

EXAMPLES = examples(
    "semel transactions outcome orders-1 41",
    "semel transactions outcome orders-1 41 \\",
    "    --producer-id 1125899906842625 --format json",
)


def outcome(
    transactional_id: Annotated[str, typer.Argument(show_default=False)],
    producer_epoch: Annotated[
        int, typer.Argument(min=0, max=INT64_MAX, metavar="EPOCH", show_default=False)
    ],
    producer_id: Annotated[
        int | None,
        typer.Option(
            min=1, max=INT64_MAX, help="Of the transaction.", show_default="the id's present one"
        ),
    ] = None,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Say how a transaction ended: COMMITTED, ABORTED, ONGOING, PREPARED or TOO_OLD_TO_KNOW.

    The last 256 transactions of a transactional id are known.
    """
    known = with_client(
        bootstrap,
        lambda client: client.admin().get_transaction_outcome(
            transactional_id, producer_epoch, producer_id=producer_id
        ),
    )
    left_ms = known.time_left_ms
    show(
        output_format,
        _document(known),
        Facts(
            {
                "Outcome": known.outcome,
                "Reason": known.abort_reason,
                "Markers": _markers(known),
                "Transactional id": known.transactional_id or None,
                "Producer id": known.producer_id,
                "Epoch": known.producer_epoch,
                "Current epoch": known.current_epoch,
                "Times out in": None if left_ms is None else duration_text(left_ms),
            }
        ),
    )


def _markers(known: "TransactionOutcomeDescription") -> str | None:
    """Say whether all readers see how it ended; None until it has ended, or if that is unknown."""
    from aiosemel import KnownOutcome

    if known.outcome not in {KnownOutcome.COMMITTED, KnownOutcome.ABORTED}:
        return None
    return "written everywhere" if known.is_complete else "missing somewhere"


def _document(known: "TransactionOutcomeDescription") -> Json:
    return {
        "outcome": known.outcome,
        "abort_reason": known.abort_reason,
        "complete": known.is_complete,
        "transactional_id": known.transactional_id or None,
        "producer_id": known.producer_id,
        "producer_epoch": known.producer_epoch,
        "current_epoch": known.current_epoch,
        "time_left_ms": known.time_left_ms,
    }
