"""`semel transactions history`: the transactions that have ended, the last one first."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.documents import document
from semel_cli.shared.options import INT32_MAX, INT64_MAX, not_empty, seconds
from semel_cli.shared.output import (
    Format,
    FormatOption,
    Json,
    Table,
    examples,
    note,
    show,
)
from semel_cli.shared.partial_lists import Listed, listed_in_part
from semel_cli.transactions.views import client_document, client_text
from semel_console.insight.texts import duration_text, time_text

if TYPE_CHECKING:
    from aiosemel import (
        AbortReason,
        EndedParticipant,
        EndedTransaction,
        HistoryFilter,
        KnownOutcome,
        TransactionHistory,
    )

EXAMPLES = examples(
    "semel transactions history --outcome aborted --within 86400",
    "semel transactions history --reason timed_out --reason fenced",
    "semel transactions history --topic orders --partition 0 --limit 20",
    "semel transactions history --id-prefix orders- --format json",
)
_PLACES_SHOWN = 3
"""Partitions and groups of a transaction in a row of the table."""

ReasonsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="client, timed_out, fenced or operator; may be given more than once.",
        show_default="any",
    ),
]
TopicOption = Annotated[
    str | None,
    typer.Option(
        help="That wrote to it; of a topic that is gone, its id.",
        callback=not_empty,
        show_default="any",
    ),
]
WithinOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        callback=seconds,
        help="Of the last so many seconds.",
        show_default="as long as they are kept",
    ),
]
BehindOption = Annotated[
    str,
    typer.Option(
        metavar="POSITION",
        help="Entries before this position, which --format json names.",
        show_default=False,
    ),
]


def history(  # noqa: PLR0913, PLR0917 - each option is an argument
    outcome: Annotated[str, typer.Option(help="committed or aborted.", show_default="both")] = "",
    reason: ReasonsOption = None,
    transactional_id: Annotated[
        str | None, typer.Option("--id", callback=not_empty, show_default="any")
    ] = None,
    id_prefix: Annotated[
        str | None,
        typer.Option(help="How transactional ids begin.", callback=not_empty, show_default="any"),
    ] = None,
    topic: TopicOption = None,
    partition: Annotated[
        int | None, typer.Option(min=0, max=INT32_MAX, help="Of --topic.", show_default="any")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="That committed offsets of it.", callback=not_empty, show_default="any"),
    ] = None,
    within: WithinOption = None,
    behind: BehindOption = "",
    limit: Annotated[int, typer.Option(min=1, max=INT64_MAX)] = 100,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """List transactions that have ended, the last one first: when, why, and who ended them.

    Coordinators keep them for a day, or for less if there are many. `timeline` shows one of them.
    """
    from aiosemel import HistoryFilter

    wanted = HistoryFilter(
        outcome=_outcome(outcome),
        abort_reasons=tuple(_reason(each) for each in reason or ()),
        transactional_id=transactional_id,
        transactional_id_prefix=id_prefix or "",
        from_time_ms=None if within is None else _now_ms() - int(within * 1000),
        topic=topic,
        partition=partition,
        group_id=group,
    )
    found = _ask(bootstrap, wanted, behind, limit)
    _show(found.entries, output_format)
    found.check()


def _ask(
    bootstrap: str | None, wanted: "HistoryFilter", behind: str, limit: int
) -> "Listed[TransactionHistory]":
    return with_client(
        bootstrap,
        lambda client: listed_in_part(
            client.admin().transaction_history(wanted, behind=behind or None, limit=limit)
        ),
    )


def _show(found: "TransactionHistory", output_format: Format) -> None:
    if found.behind is not None:
        note(f"there are more: see --limit, or go on with --behind {found.behind}")
    show(
        output_format,
        {
            "transactions": [ended_document(each) for each in found.transactions],
            "behind": found.behind,
        },
        Table(
            headings=(
                *("Completed", "Transactional id", "Epoch", "Outcome", "Reason"),
                *("Took", "Wrote to", "Client", "Ended by"),
            ),
            rows=[
                (
                    time_text(each.completed_time_ms or 0),
                    each.transactional_id,
                    each.producer_epoch,
                    each.outcome,
                    each.abort_reason,
                    lasted_text(each),
                    _places(each),
                    client_text(each.client),
                    operator_text(each),
                )
                for each in found.transactions
            ],
            empty="No transaction that has ended matches.",
        ),
    )


def ended_document(each: "EndedTransaction") -> Json:
    """Return an entry of the history, for programs."""
    operator = each.operator
    return document(
        each,
        traceparent=each.traceparent or None,
        client=client_document(each.client),
        operator=None if operator is None else document(operator, name=operator.name or None),
    )


def place_text(each: "EndedParticipant") -> str:
    """Return the name of a participant, for people."""
    return f"group {each.group_id}" if each.partition is None else str(each.partition)


def operator_text(each: "EndedTransaction") -> str | None:
    """Return who ended a transaction by hand, and why, for people."""
    if each.operator is None:
        return None
    who = each.operator.name or each.operator.principal
    return f"{who}: {each.operator.reason}" if each.operator.reason else who


def _places(each: "EndedTransaction") -> str:
    shown = [place_text(part) for part in each.participants[:_PLACES_SHOWN]]
    others = each.participant_count - len(shown)
    return ", ".join(shown) + (f" and {others} more" if others > 0 else "")


def lasted_text(each: "EndedTransaction") -> str | None:
    """Return how long a transaction lasted, as far as its coordinator knows, for people."""
    from semel_console.insight.ended_writes import lasted_ms

    passed_ms = lasted_ms(each)
    return None if passed_ms is None else duration_text(passed_ms)


def _outcome(text: str) -> "KnownOutcome | None":
    from aiosemel import KnownOutcome

    if not text:
        return None
    for outcome in (KnownOutcome.COMMITTED, KnownOutcome.ABORTED):
        if outcome.lower() == text.lower():
            return outcome
    raise UsageError(f"outcome {text!r} is neither committed nor aborted")


def _reason(text: str) -> "AbortReason":
    from aiosemel import AbortReason

    for reason in AbortReason:
        if reason.lower() == text.lower().replace("-", "_"):
            return reason
    known = ", ".join(reason.lower() for reason in AbortReason)
    raise UsageError(f"reason {text!r} is none of {known}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
