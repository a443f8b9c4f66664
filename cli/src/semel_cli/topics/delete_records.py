"""`semel topics delete-records`: delete the oldest records of a topic."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.confirmation import confirm
from semel_cli.shared.options import INT32_MAX, INT64_MAX, ReasonOption, whoami
from semel_cli.shared.output import Format, FormatOption, Table, are, examples, note, show
from semel_console.insight.texts import counted

if TYPE_CHECKING:
    from aiosemel import DeletedRecords, SemelClient, TopicPartition

EXAMPLES = examples(
    "semel topics delete-records orders --all --dry-run",
    "semel topics delete-records orders --partition 0 --before-offset 1000",
)


def delete_records(  # noqa: PLR0913, PLR0917 - each option is an argument
    topic: Annotated[str, typer.Argument(show_default=False)],
    partitions: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, max=INT32_MAX, show_default="all of the topic"),
    ] = None,
    before_offset: Annotated[
        int | None,
        typer.Option(min=0, max=INT64_MAX, help="The first offset that stays.", show_default=False),
    ] = None,
    all_records: Annotated[
        bool, typer.Option("--all", help="Delete all records before the first open transaction.")
    ] = False,
    reason: ReasonOption = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the new starts, but delete no record.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Delete the oldest records of a topic; shows where its partitions start then.

    Offsets count markers and aborted records, too. The records of an open transaction stay, with
    all records behind them.
    """
    if all_records == (before_offset is not None):
        raise UsageError("up to where? Give either --before-offset or --all")

    async def delete(
        client: "SemelClient", *, validate_only: bool
    ) -> "dict[TopicPartition, DeletedRecords]":
        admin = client.admin()
        described = await admin.describe_topic(topic)
        chosen = partitions or [partition.partition for partition in described.partitions]
        before = {(topic, batch): before_offset for batch in chosen}
        return await admin.delete_records(
            before, validate_only=validate_only, operator=whoami(), reason=reason
        )

    if not (yes or dry_run):
        with_client(bootstrap, partial(delete, validate_only=True), changes=True)
        what = "all records" if all_records else f"the records below offset {before_offset}"
        confirm(f"Delete {what} in {_where(partitions)} of {topic}?")
    work = partial(delete, validate_only=dry_run)
    deleted = with_client(bootstrap, work, changes=not dry_run)
    _show(output_format, topic, deleted, dry_run=dry_run)


def _where(partitions: list[int] | None) -> str:
    if not partitions:
        return "all partitions"
    numbers = ", ".join(map(str, partitions))
    return f"partition {numbers}" if len(partitions) == 1 else f"partitions {numbers}"


def _show(
    output_format: Format,
    topic: str,
    deleted: "dict[TopicPartition, DeletedRecords]",
    *,
    dry_run: bool,
) -> None:
    total = sum(each.deleted_offsets for each in deleted.values())
    will = "would be" if dry_run else are(total)
    note(f"{counted(total, 'offset')} {will} deleted")
    show(
        output_format,
        {
            "topic": topic,
            "dry_run": dry_run,
            "partitions": [
                {"partition": at.partition, **each._asdict()}
                for at, each in sorted(deleted.items())
            ],
        },
        Table(
            headings=("Partition", "Start", "Deleted"),
            rows=[
                (at.partition, each.log_start_offset, each.deleted_offsets)
                for at, each in sorted(deleted.items())
            ],
        ),
    )
