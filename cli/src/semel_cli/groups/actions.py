"""`semel groups`: reset-offsets, delete-offsets, delete."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.documents import document
from semel_cli.shared.many_things import Outcomes, each_of
from semel_cli.shared.options import INT64_MAX, ReasonOption, is_int32, whoami
from semel_cli.shared.output import Format, FormatOption, Table, examples, note, show
from semel_cli.shared.questions import confirm_each
from semel_cli.topics.partition_choice import partitions_of

if TYPE_CHECKING:
    from aiosemel import OffsetChange, ResetTo, SemelClient, TopicPartition

RESET_EXAMPLES = examples(
    "semel groups reset-offsets reports --to-earliest --dry-run",
    "semel groups reset-offsets reports --to-datetime 2026-03-01T08:00 -t orders",
    "semel groups reset-offsets reports --shift-by -100 --topic orders:0,2",
)
DELETE_EXAMPLES = examples(
    "semel groups delete reports --dry-run", "semel groups delete reports -y"
)
DELETE_OFFSETS_EXAMPLES = examples(
    "semel groups delete-offsets reports --topic orders --dry-run",
    "semel groups delete-offsets reports --topic orders:0,2",
)

GroupArgument = Annotated[str, typer.Argument(show_default=False)]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing; show what would change.")
]
TopicsOption = Annotated[
    list[str],
    typer.Option("--topic", "-t", metavar="NAME[:P,P]", help="A topic, or some partitions of it."),
]


SomeTopicsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="NAME[:P,P]",
        help="A topic, or some partitions of it; by default wherever the group has an offset.",
        show_default=False,
    ),
]
EarliestOption = Annotated[bool, typer.Option("--to-earliest", help="To the start of the logs.")]
LatestOption = Annotated[
    bool, typer.Option("--to-latest", help="Past every record that is committed by now.")
]
OffsetOption = Annotated[
    int | None,
    typer.Option("--to-offset", metavar="N", min=0, max=INT64_MAX, help="To this offset."),
]
ShiftOption = Annotated[
    int | None,
    typer.Option(
        "--shift-by",
        metavar="N",
        min=-INT64_MAX,
        max=INT64_MAX,
        help="So many offsets on, or back.",
    ),
]
DatetimeOption = Annotated[
    datetime | None,
    typer.Option(
        "--to-datetime",
        formats=["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"],
        help="To the first record at this time (UTC) or later.",
    ),
]
TimestampOption = Annotated[
    int | None,
    typer.Option(
        "--to-timestamp", metavar="MS", min=0, max=INT64_MAX, help="The same, in ms since 1970."
    ),
]


def reset_offsets(  # noqa: PLR0913, PLR0917 - each option is an argument
    group: GroupArgument,
    topics: SomeTopicsOption = None,
    to_earliest: EarliestOption = False,
    to_latest: LatestOption = False,
    to_offset: OffsetOption = None,
    shift_by: ShiftOption = None,
    to_datetime: DatetimeOption = None,
    to_timestamp: TimestampOption = None,
    reason: ReasonOption = "",
    dry_run: DryRunOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Let a group go on somewhere else. Its members must be stopped first.

    An offset that the log does not hold becomes its start, or the end of the committed records.
    """
    to = _target(
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_offset=to_offset,
        shift_by=shift_by,
        timestamp_ms=_timestamp_ms(to_datetime, to_timestamp),
    )
    named = None if topics is None else _named(topics)

    async def work(client: "SemelClient") -> "Sequence[OffsetChange]":
        partitions = None if named is None else await _partitions(client, named)
        return await client.admin().groups.reset_offsets(
            group, to, partitions=partitions, dry_run=dry_run, operator=whoami(), reason=reason
        )

    changes = with_client(bootstrap, work, changes=not dry_run)
    if dry_run:
        note("nothing is changed: this is a dry run")
    show(
        output_format,
        list(map(document, changes)),
        Table(
            headings=("Topic", "Partition", "Before", "After"),
            rows=[(*change.partition, change.before, change.after) for change in changes],
            empty="The group has committed no offsets: name topics with --topic.",
        ),
    )


def delete_offsets(
    group: GroupArgument,
    topics: TopicsOption,
    reason: ReasonOption = "",
    dry_run: DryRunOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Forget a group's offsets of topics that none of its members reads.

    --dry-run refuses the same offsets as the deletion.
    """
    named = _named(topics)

    async def work(client: "SemelClient") -> "dict[TopicPartition, int]":
        partitions = await _partitions(client, named)
        admin = client.admin()
        known = await admin.list_consumer_group_offsets(group, partitions)
        await admin.groups.delete_offsets(
            group, partitions, dry_run=dry_run, operator=whoami(), reason=reason
        )
        return {each: at.offset for each, at in known.items() if at is not None}

    deleted = with_client(bootstrap, work, changes=not dry_run)
    if dry_run:
        note("nothing is changed: this is a dry run")
    show(
        output_format,
        [
            {"topic": each.topic, "partition": each.partition, "before": offset}
            for each, offset in sorted(deleted.items())
        ],
        Table(
            headings=("Topic", "Partition", "Before"),
            rows=[(*each, offset) for each, offset in sorted(deleted.items())],
            empty="The group has no offset there.",
        ),
    )


def delete(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    reason: ReasonOption = "",
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = None,
) -> None:
    """Forget groups without members, with all their offsets.

    Each for itself: if one is refused, the others are still deleted. --dry-run refuses the same
    groups as the deletion.
    """
    asked = Outcomes(groups, []) if yes or dry_run else _ask_about(groups, bootstrap)

    async def work(client: "SemelClient") -> "Outcomes[None]":
        async def delete_group(name: str) -> None:
            await client.admin().groups.delete(
                name, dry_run=dry_run, operator=whoami(), reason=reason
            )
            note(f"{name} {'would be' if dry_run else 'is'} deleted")

        return await each_of(asked.done, delete_group)

    deleted = with_client(bootstrap, work, changes=not dry_run)
    Outcomes(deleted.done, [*asked.refused, *deleted.refused]).check()


def _ask_about(groups: list[str], bootstrap: str | None) -> Outcomes[str]:
    """Return the groups that exist and have no members."""
    return confirm_each(
        groups,
        lambda client, name: client.admin().groups.delete(name, dry_run=True),
        lambda names: f"Delete {names} with all offsets?",
        bootstrap=bootstrap,
    )


def _timestamp_ms(time: datetime | None, timestamp_ms: int | None) -> int | None:
    if time is None:
        return timestamp_ms
    if timestamp_ms is not None:
        raise UsageError("--to-datetime and --to-timestamp are both given")
    return int(time.replace(tzinfo=UTC).timestamp() * 1000)


def _target(
    *,
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    shift_by: int | None,
    timestamp_ms: int | None,
) -> "ResetTo":
    from aiosemel import OffsetSpec, ShiftBy, ToOffset, ToTimestamp

    wanted: list[ResetTo] = []
    if to_earliest:
        wanted.append(OffsetSpec.EARLIEST)
    if to_latest:
        wanted.append(OffsetSpec.LATEST)
    if to_offset is not None:
        wanted.append(ToOffset(to_offset))
    if shift_by is not None:
        wanted.append(ShiftBy(shift_by))
    if timestamp_ms is not None:
        wanted.append(ToTimestamp(timestamp_ms))
    if len(wanted) != 1:
        given = f"{len(wanted)} places" if wanted else "no place"
        raise UsageError(
            f"{given} to reset to: give one of --to-earliest, --to-latest, --to-offset,"
            " --shift-by, --to-datetime and --to-timestamp"
        )
    return wanted[0]


class _Named(NamedTuple):
    """What an option names: a topic, or some partitions of it."""

    topic: str
    partitions: list[int] | None
    """None: all."""


def _named(topics: Sequence[str]) -> list[_Named]:
    """Read NAME or NAME:0,1,2. Raises UsageError."""
    found = []
    for text in topics:
        topic, colon, numbers = text.partition(":")
        chosen = numbers.split(",") if colon else []
        if not all(map(is_int32, chosen)):
            raise UsageError(f"--topic is {text!r}: must be NAME or NAME:0,1,2")
        found.append(_Named(topic, list(map(int, chosen)) if colon else None))
    return found


async def _partitions(client: "SemelClient", named: Sequence[_Named]) -> "list[TopicPartition]":
    """Return the partitions that are named; raises what ``partitions_of`` raises."""
    return [
        partition
        for topic, numbers in named
        for partition in await partitions_of(client, topic, numbers)
    ]
