"""`semel topics move`, `semel cluster moves`, `semel cluster rebalance`, `… decommission`."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import CommandError, UsageError
from semel_cli.shared.command_session import with_client
from semel_cli.shared.documents import document
from semel_cli.shared.options import INT32_MAX, is_int32
from semel_cli.shared.output import (
    Format,
    FormatOption,
    Json,
    Table,
    examples,
    note,
    progress,
    show,
)
from semel_console.insight.texts import counted

if TYPE_CHECKING:
    from aiosemel import Admin, PartitionReassignment, SemelClient, ServiceRole, TopicPartition

MOVE_EXAMPLES = examples(
    "semel topics move orders --partition 0 --partition 2 --to 3 --wait",
    "semel topics move orders --to 3 --dry-run",
    "semel topics move orders --partition 2 --cancel",
    "semel topics move __consumer_offsets --partition 3 --to 1   # groups",
)
MOVES_EXAMPLES = examples("semel cluster moves", "semel cluster moves --format json")
REBALANCE_EXAMPLES = examples(
    "semel cluster rebalance --dry-run",
    "semel cluster rebalance --wait",
)
DECOMMISSION_EXAMPLES = examples(
    "semel cluster decommission broker-2   # then: semel cluster rebalance --wait",
    "semel cluster decommission group-coordinator-1 --undo",
)

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show it, but move nothing.")]
WaitOption = Annotated[
    bool,
    typer.Option("--wait", help="Return once all is moved. Ctrl-C stops waiting, not the moves."),
]


def move(
    topic: Annotated[str, typer.Argument(show_default=False)],
    partitions: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, max=INT32_MAX, show_default="all of the topic"),
    ] = None,
    to: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=0,
            max=INT32_MAX,
            help="The broker that is to lead them.",
            show_default=False,
        ),
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel the moves: partitions stay with their leaders.")
    ] = False,
    dry_run: DryRunOption = False,
    wait: WaitOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Move partitions of a topic to another broker, or cancel moves.

    Producers and readers go on meanwhile. `semel cluster moves` lists the moves. Groups are
    partitions of `__consumer_offsets`, which move between group coordinators, and the transaction
    log is `__transaction_state`, which moves between coordinators: all but partition 0.
    """
    if cancel == (to is not None):
        raise UsageError("where to? Give either --to NUMBER or --cancel")

    async def work(client: "SemelClient") -> "dict[TopicPartition, PartitionReassignment]":
        admin = client.admin()
        chosen = partitions or await _partitions_of(admin, topic)
        moved = await admin.moves.alter_partition_reassignments(
            {(topic, batch): to for batch in chosen}, validate_only=dry_run
        )
        _note_moves(moved, dry_run=dry_run)
        return await _waited(client, moved) if wait and not dry_run else moved

    _show_moves(output_format, with_client(bootstrap, work, changes=not dry_run), dry_run=dry_run)


def moves(output_format: FormatOption = Format.TEXT, bootstrap: BootstrapOption = None) -> None:
    """List all partitions that move: of topics, of groups, and of the transaction log.

    A move goes on as long as both instances are there. `semel topics move --cancel` gives it up.
    """
    moving = with_client(
        bootstrap, lambda client: client.admin().moves.list_partition_reassignments()
    )
    show(
        output_format,
        {"partitions": _document(moving)},
        _table(moving, empty="Nothing moves."),
    )


def rebalance(
    dry_run: DryRunOption = False,
    wait: WaitOption = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Move partitions so that every broker leads its share of each topic, and of all together.

    Groups are shared out over group coordinators likewise, and the transaction log over
    coordinators. As few partitions move as that takes. A decommissioned instance ends with none.
    """

    async def work(client: "SemelClient") -> "dict[TopicPartition, PartitionReassignment]":
        moved = await client.admin().moves.rebalance_partitions(validate_only=dry_run)
        _note_moves(moved, dry_run=dry_run)
        if not wait or dry_run:
            return moved
        # Moves that were under way count, too: without them no broker has its share yet.
        under_way = await client.admin().moves.list_partition_reassignments()
        return await _waited(client, {**under_way, **moved})

    _show_moves(output_format, with_client(bootstrap, work, changes=not dry_run), dry_run=dry_run)


def decommission(
    instance: Annotated[
        str,
        typer.Argument(help="As `semel cluster describe` names it: broker-2.", show_default=False),
    ],
    undo: Annotated[bool, typer.Option("--undo", help="Let it lead partitions again.")] = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Give an instance no new partitions; `semel cluster rebalance` takes its partitions away."""
    role, instance_id = _instance_named(instance)

    async def work(client: "SemelClient") -> int:
        return await client.admin().moves.decommission_instance(role, instance_id, undo=undo)

    left = with_client(bootstrap, work, changes=True)
    if undo:
        note(f"{instance} may lead partitions again: semel cluster rebalance")
    elif left:
        note(f"{instance} is decommissioned, but not empty yet: semel cluster rebalance")
    else:
        note(f"{instance} is decommissioned and empty: it may be stopped for good")
    show(
        output_format,
        {"instance": instance, "decommissioned": not undo, "leader_partitions": left},
        Table(
            headings=("Instance", "Decommissioned", "Partitions"),
            rows=[(instance, "" if undo else "yes", left)],
        ),
    )


async def _partitions_of(admin: "Admin", topic: str) -> Iterable[int]:
    """Return the partitions of a topic; of an internal one, the movable ones."""
    from semel_common.ids import InternalTopic

    match topic:
        case InternalTopic.CONSUMER_OFFSETS:
            return range((await admin.describe_cluster()).group_partitions)
        case InternalTopic.TRANSACTION_STATE:  # The controller keeps the first one.
            return range(1, (await admin.describe_cluster()).transaction_log_partitions)
        case _:
            return [
                partition.partition for partition in (await admin.describe_topic(topic)).partitions
            ]


def _instance_named(name: str) -> "tuple[ServiceRole, int]":
    from aiosemel import ServiceRole

    role, _, number = name.rpartition("-")
    if role not in set(ServiceRole) or not is_int32(number):
        raise UsageError(
            f"{name!r} names no instance: give it as `semel cluster describe` does, like"
            f" {', '.join(f'{each}-2' for each in ServiceRole)}"
        )
    return ServiceRole(role), int(number)


async def _waited(
    client: "SemelClient", moved: "Mapping[TopicPartition, PartitionReassignment]"
) -> "dict[TopicPartition, PartitionReassignment]":
    """Return where partitions are led once they move no more.

    Raises CommandError if one of them is led elsewhere than it was to be: it was moved again, or
    its move was given up, meanwhile.
    """
    from aiosemel import PartitionReassignment

    with progress("moving"):
        led = await client.admin().moves.wait_for_reassignments(moved)
    places: dict[TopicPartition, PartitionReassignment] = {}
    for at, leader_id in led.items():
        role, wanted = moved[at].role, moved[at].target or moved[at].leader
        places[at] = PartitionReassignment(role=role, leader_id=leader_id, moving_to=None)
        if places[at].leader != wanted:
            raise CommandError(
                f"{at} is led by {places[at].leader}, not by {wanted}: its move was changed"
                " meanwhile"
            )
    if places:
        note(f"{counted(len(places), 'partition')} {'has' if len(places) == 1 else 'have'} moved")
    return places


def _note_moves(moved: "Mapping[TopicPartition, PartitionReassignment]", *, dry_run: bool) -> None:
    count = sum(each.moving_to is not None for each in moved.values())
    will = "would move" if dry_run else "moves" if count == 1 else "move"
    note(f"{counted(count, 'partition')} {will}")


def _show_moves(
    output_format: Format,
    moved: "Mapping[TopicPartition, PartitionReassignment]",
    *,
    dry_run: bool,
) -> None:
    show(
        output_format,
        {"dry_run": dry_run, "partitions": _document(moved)},
        _table(moved, empty="Nothing has to move."),
    )


def _document(moved: "Mapping[TopicPartition, PartitionReassignment]") -> list[Json]:
    return [{**at._asdict(), **document(each)} for at, each in moved.items()]


def _table(moved: "Mapping[TopicPartition, PartitionReassignment]", *, empty: str) -> Table:
    return Table(
        headings=("Topic", "Partition", "Leader", "Moving to"),
        rows=[(at.topic, at.partition, each.leader, each.target) for at, each in moved.items()],
        empty=empty,
    )
