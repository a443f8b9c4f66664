"""`semel transactions`: the questions and decisions of operators."""

from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.documents import document
from semel_cli.shared.options import INT32_MAX, INT64_MAX, seconds, whoami
from semel_cli.shared.output import Facts, Format, FormatOption, Json, Table, examples, note, show
from semel_cli.topics.partition_choice import partitions_of
from semel_console.insight.texts import duration_text, place, time_text

if TYPE_CHECKING:
    from aiosemel import (
        AbortedByOperator,
        FencedByOperator,
        OpenTransaction,
        PartitionProducers,
        SemelClient,
    )

FIND_HANGING_EXAMPLES = examples(
    "semel transactions find-hanging",
    "semel transactions find-hanging --open-longer-than 60 --format json",
)
ABORT_EXAMPLES = examples(
    "semel transactions abort orders-1 \\",
    "    --producer-id 1125899906842625 --epoch 41 --dry-run",
    "semel transactions abort orders-1 \\",
    "    --producer-id 1125899906842625 --epoch 41 --reason 'its host is lost'",
)
FENCE_EXAMPLES = examples(
    "semel transactions fence orders-1 --dry-run",
    "semel transactions fence orders-1 --reason 'runs twice'",
)
DESCRIBE_PRODUCERS_EXAMPLES = examples(
    "semel transactions describe-producers orders 0",
    "semel transactions describe-producers orders 0 --limit 1 --format json",
)

_PREPARED = "PREPARED"

IdArgument = Annotated[str, typer.Argument(metavar="TRANSACTIONAL_ID", show_default=False)]
ReasonOption = Annotated[
    str, typer.Option(help="Why, for the log; needed unless --dry-run.", show_default=False)
]
OperatorOption = Annotated[str, typer.Option(help="Who, for the log.", show_default="user@host")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say which transaction would end, and end none.")
]


def find_hanging(
    open_longer_than: Annotated[
        float,
        typer.Option(metavar="SECONDS", callback=seconds, help="Open at a partition or group."),
    ] = 900,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 100,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """List transactions that are open at partitions and groups for longer than expected.

    With the view of their coordinators: a decided transaction that is still open hangs.
    """
    longer_ms = int(open_longer_than * 1000)
    found = with_client(
        bootstrap,
        lambda client: client.admin().operators.list_open_transactions(
            open_longer_than_ms=longer_ms, limit=limit
        ),
    )
    for instance in found.unreachable:
        note(f"not asked: {instance}")
    if found.truncated:
        note(f"there are more than {limit}: see --limit")
    show(
        output_format,
        [_open(transaction) for transaction in found.transactions],
        Table(
            headings=("Open at", "Age", "Producer id", "Epoch", "From", "Id", "Coordinator says"),
            rows=[
                (
                    place(transaction),
                    duration_text(transaction.age_ms),
                    transaction.producer_id,
                    transaction.producer_epoch,
                    transaction.first_offset,
                    transaction.known.transactional_id if transaction.known else None,
                    verdict(transaction),
                )
                for transaction in found.transactions
            ],
            empty=f"No transaction is open for longer than {duration_text(longer_ms)}.",
        ),
    )


def abort(
    transactional_id: IdArgument,
    producer_id: Annotated[int, typer.Option(min=1, max=INT64_MAX, show_default=False)],
    epoch: Annotated[int, typer.Option(min=0, max=INT64_MAX, show_default=False)],
    reason: ReasonOption = "",
    operator: OperatorOption = "",
    dry_run: DryRunOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Abort an open transaction. Its producer is told so, and goes on with the next one.

    `find-hanging`, `list` and `describe` show its producer id and epoch; no other one is hit.
    """
    _check_reason(reason, dry_run=dry_run)

    async def work(client: "SemelClient") -> "AbortedByOperator":
        return await client.admin().operators.abort_transaction(
            transactional_id,
            producer_id,
            epoch,
            operator=operator or whoami(),
            reason=reason,
            dry_run=dry_run,
        )

    done = with_client(bootstrap, work, changes=not dry_run)
    result = "already aborted" if done.already_aborted else _did("abort", dry_run=dry_run)
    show(
        output_format,
        {
            "transactional_id": transactional_id,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "already_aborted": done.already_aborted,
            "participants": done.participants,
            "dry_run": dry_run,
        },
        Facts(
            {
                "Result": result,
                "Transactional id": transactional_id,
                "Producer id": producer_id,
                "Epoch": epoch,
                "Partitions and groups": done.participants,
            }
        ),
    )


def fence(
    transactional_id: IdArgument,
    reason: ReasonOption = "",
    operator: OperatorOption = "",
    dry_run: DryRunOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Take a transactional id from its producer, and abort its open transaction.

    The next producer with the id takes it over.
    """
    _check_reason(reason, dry_run=dry_run)

    async def work(client: "SemelClient") -> "FencedByOperator":
        return await client.admin().operators.fence_producer(
            transactional_id, operator=operator or whoami(), reason=reason, dry_run=dry_run
        )

    done = with_client(bootstrap, work, changes=not dry_run)
    show(
        output_format,
        {
            "transactional_id": transactional_id,
            "producer_id": done.producer_id,
            "fenced_epoch": done.fenced_epoch,
            "participants": done.participants,
            "dry_run": dry_run,
        },
        Facts(
            {
                "Result": _did("fence", dry_run=dry_run),
                "Transactional id": transactional_id,
                "Producer id": done.producer_id,
                "Fenced epoch": done.fenced_epoch,
                "Partitions and groups": done.participants,
            }
        ),
    )


def describe_producers(
    topic: Annotated[str, typer.Argument(show_default=False)],
    partition: Annotated[int, typer.Argument(min=0, max=INT32_MAX, show_default=False)],
    limit: Annotated[int, typer.Option(min=1, max=1_000)] = 100,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Describe the producers of a partition, and the holder of its last stable offset."""

    async def work(client: "SemelClient") -> "PartitionProducers":
        (named,) = await partitions_of(client, topic, [partition])
        return await client.admin().operators.describe_producers(named, limit=limit)

    described = with_client(bootstrap, work)
    holder = next(
        (producer for producer in described.producers if producer.open_transactions), None
    )
    since = holder.open_transactions[0] if holder else None
    show(
        output_format,
        _producers(described),
        Facts(
            {
                "Partition": str(described.partition),
                "High watermark": described.high_watermark,
                "Last stable offset": described.last_stable_offset,
                "Held by producer id": holder.producer_id if holder else None,
                "Held by epoch": since.producer_epoch if since else None,
                "Held since": time_text(since.start_time_ms) if since else None,
                "Held for": duration_text(since.age_ms) if since else None,
                "Producers known": described.producer_count,
            }
        ),
        Table(
            headings=("Producer id", "Epoch", "Last sequence", "Last heard of", "Fence", "Open"),
            rows=[
                (
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.last_sequence,
                    time_text(producer.last_timestamp_ms),
                    producer.fence,
                    ", ".join(
                        f"epoch {epoch.producer_epoch} from {epoch.first_offset}"
                        for epoch in producer.open_transactions
                    ),
                )
                for producer in described.producers
            ],
            empty="No producer is known.",
        ),
    )


def verdict(found: "OpenTransaction") -> str:
    """Say what the coordinator knows of an open transaction."""
    if found.known is None:
        return found.problem
    left_ms = found.known.time_left_ms
    if found.known.outcome.value == _PREPARED:
        return "PREPARED, waits for its owner"
    if left_ms is None:
        return f"{found.known.outcome}, but open here: it hangs"
    return f"{found.known.outcome}, times out in {duration_text(left_ms)}"


def _check_reason(reason: str, *, dry_run: bool) -> None:
    if not reason and not dry_run:
        raise UsageError("why? Give a --reason for the log, or see first with --dry-run")


def _did(what: str, *, dry_run: bool) -> str:
    return f"would {what}" if dry_run else {"abort": "aborted", "fence": "fenced"}[what]


def _open(found: "OpenTransaction") -> Json:
    known = found.known
    return {
        "topic": found.partition.topic if found.partition else None,
        "partition": found.partition.partition if found.partition else None,
        "group_id": found.group_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "start_time_ms": found.start_time_ms,
        "age_ms": found.age_ms,
        "first_offset": found.first_offset,
        "outcome": known.outcome if known else None,
        "transactional_id": (known.transactional_id or None) if known else None,
        "current_epoch": known.current_epoch if known else None,
        "time_left_ms": known.time_left_ms if known else None,
        "problem": found.problem or None,
    }


def _producers(described: "PartitionProducers") -> Json:
    return {
        "topic": described.partition.topic,
        "partition": described.partition.partition,
        "high_watermark": described.high_watermark,
        "last_stable_offset": described.last_stable_offset,
        "producer_count": described.producer_count,
        "producers": list(map(document, described.producers)),
    }
