"""`semel audit`: what operators did, the last request first."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_session import with_client
from semel_cli.shared.documents import document
from semel_cli.shared.options import INT64_MAX, not_empty
from semel_cli.shared.output import Format, FormatOption, Table, examples, note, show
from semel_cli.shared.partial_lists import listed_in_part
from semel_cli.transactions.history import BehindOption, WithinOption
from semel_console.insight.texts import time_text

if TYPE_CHECKING:
    from aiosemel import AuditEntry, AuditLog

EXAMPLES = examples(
    "semel audit",
    "semel audit --action AbortTransaction --action FenceProducer",
    "semel audit --principal User:ada --within 86400 --format json",
)


def audit(
    action: Annotated[
        list[str] | None,
        typer.Option(help="The name of an RPC; may be given more than once.", show_default="any"),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option(help="Who asked, such as User:ada.", callback=not_empty, show_default="any"),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            help="From where they asked, such as 10.0.0.7.", callback=not_empty, show_default="any"
        ),
    ] = None,
    within: WithinOption = None,
    behind: BehindOption = "",
    limit: Annotated[int, typer.Option(min=1, max=INT64_MAX)] = 100,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """List the requests of operators, the last one first: who, from where, and why.

    Aborts, fences and completions of transactions; changes of topics, access rules and quotas;
    moves of partitions. Rehearsals are left out.
    """
    from_ms = None if within is None else time.time_ns() // 1_000_000 - int(within * 1000)
    found = with_client(
        bootstrap,
        lambda client: listed_in_part(
            client.admin().operators.list_audit(
                actions=action or (),
                principal=principal,
                address=address,
                from_time_ms=from_ms,
                behind=behind or None,
                limit=limit,
            )
        ),
    )
    _show(found.entries, output_format)
    found.check()


def _show(found: "AuditLog", output_format: Format) -> None:
    if found.behind is not None:
        note(f"there are more: see --limit, or go on with --behind {found.behind}")
    show(
        output_format,
        {
            "entries": list(map(document, found.entries)),
            "behind": found.behind,
        },
        Table(
            headings=("Time", "Action", "Who", "From", "Why", "End", "What"),
            rows=[
                (
                    time_text(each.time_ms),
                    each.action,
                    _who(each),
                    each.address,
                    each.reason,
                    each.end,
                    each.what,
                )
                for each in found.entries
            ],
            empty="No request matches.",
        ),
    )


def _who(each: "AuditEntry") -> str:
    return f"{each.principal} ({each.operator})" if each.operator else each.principal
