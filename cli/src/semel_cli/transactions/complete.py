"""`semel transactions complete`: end a prepared transaction by hand."""

from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import CommandError, UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.documents import document
from semel_cli.shared.options import INT64_MAX, ReasonOption, whoami
from semel_cli.shared.output import Facts, Format, FormatOption, Json, examples, note, show
from semel_cli.transactions.views import age_text, names

if TYPE_CHECKING:
    from aiosemel import SemelClient, TransactionalIdDescription, TransactionDescription

EXAMPLES = examples(
    "semel transactions list --state prepared",
    "semel transactions complete orders-1 5 --commit --dry-run",
    "semel transactions complete orders-1 5 --commit --reason 'its host is lost'",
)


def complete(
    transactional_id: Annotated[str, typer.Argument(show_default=False)],
    producer_epoch: Annotated[
        int,
        typer.Argument(
            min=0, max=INT64_MAX, metavar="EPOCH", help="As `list` shows it.", show_default=False
        ),
    ],
    commit: Annotated[
        bool | None,
        typer.Option(
            "--commit/--abort",
            help="What the outside system has decided: it must agree.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which transaction would end, and end none.")
    ] = False,
    reason: ReasonOption = "",
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Commit or abort a prepared transaction.

    A prepared transaction waits for its owner, which has asked another system, such as a database,
    for the decision. Complete it by hand only if that owner will not come back, and only as that
    system has decided.
    """
    if commit is None:
        raise UsageError("what has the outside system decided? Give --commit or --abort")

    async def work(client: "SemelClient") -> "TransactionDescription | None":
        if dry_run:
            return await _rehearse(client, transactional_id, producer_epoch)
        return await _complete(
            client, transactional_id, producer_epoch, commit=commit, reason=reason
        )

    found = with_client(bootstrap, work, changes=not dry_run)
    ended: dict[str, Json] = {
        "transactional_id": transactional_id,
        "producer_epoch": producer_epoch,
        "outcome": "COMMITTED" if commit else "ABORTED",
        "dry_run": dry_run,
    }
    _show(output_format, ended, found)
    _comment(was_prepared=found is not None, dry_run=dry_run)


def _show(
    output_format: Format, ended: dict[str, Json], found: "TransactionDescription | None"
) -> None:
    prepared_ms = None if found is None else found.prepared_time_ms
    show(
        output_format,
        {
            **ended,
            "prepared_time_ms": prepared_ms,
            "participants": None if found is None else document(found.participants),
        },
        Facts(
            {
                "Transactional id": f"{ended['transactional_id']}",
                "Epoch": f"{ended['producer_epoch']}",
                "Prepared for": age_text(prepared_ms),
                "Wrote to": None if found is None else names(found.participants),
                "Outcome": f"{ended['outcome']}",
            }
        ),
    )


def _comment(*, was_prepared: bool, dry_run: bool) -> None:
    if dry_run:
        note("Nothing was done: without --dry-run, it ends like this.")
    elif not was_prepared:
        note("It had ended like this already.")


async def _rehearse(
    client: "SemelClient", transactional_id: str, producer_epoch: int
) -> "TransactionDescription":
    described = await client.admin().describe_transactions(transactional_id)
    found = _prepared_in(described, producer_epoch)
    if found is None:
        raise CommandError(
            f"transaction {producer_epoch} of {transactional_id} is not prepared; for a list of"
            " prepared transactions: semel transactions list --state prepared"
        )
    return found


async def _complete(
    client: "SemelClient",
    transactional_id: str,
    producer_epoch: int,
    *,
    commit: bool,
    reason: str,
) -> "TransactionDescription | None":
    """Return what was prepared; None if it had ended before."""
    from aiosemel import PreparedTransactionId

    described = await client.admin().describe_transactions(transactional_id)
    prepared = PreparedTransactionId(
        transactional_id=transactional_id,
        producer_id=described.producer_id,
        producer_epoch=producer_epoch,
    )
    await client.admin().complete_prepared(
        prepared, commit=commit, wait_until_visible=True, operator=whoami(), reason=reason
    )
    return _prepared_in(described, producer_epoch)


def _prepared_in(
    described: "TransactionalIdDescription", producer_epoch: int
) -> "TransactionDescription | None":
    for transaction in described.transactions:
        if (
            transaction.producer_epoch == producer_epoch
            and transaction.prepared_time_ms is not None
        ):
            return transaction
    return None
