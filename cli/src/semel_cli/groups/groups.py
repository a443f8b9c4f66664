"""`semel groups`: list, describe, and the actions of ``group_actions``."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.groups.actions import (
    DELETE_EXAMPLES,
    DELETE_OFFSETS_EXAMPLES,
    RESET_EXAMPLES,
    delete,
    delete_offsets,
    reset_offsets,
)
from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_session import with_client
from semel_cli.shared.documents import document
from semel_cli.shared.output import (
    Facts,
    Format,
    FormatOption,
    Json,
    Table,
    examples,
    progress,
    show,
)
from semel_cli.shared.partial_lists import listed_in_part

if TYPE_CHECKING:
    from aiosemel import GroupDescription, SemelClient, TopicPartition
    from semel_console.insight.offset_views import GroupOffset

_AWAY = -2
"""The member epoch of a static member that has left for a while."""

app = typer.Typer(help="Look after consumer groups.", no_args_is_help=True)


@app.command("list", epilog=examples("semel groups list", "semel groups list --format json"))
def list_groups(
    output_format: FormatOption = Format.TEXT, bootstrap: BootstrapOption = None
) -> None:
    """List all consumer groups."""
    listed = with_client(bootstrap, lambda client: listed_in_part(client.admin().list_groups()))
    groups = listed.entries
    show(
        output_format,
        [
            {"group_id": group.group_id, "state": group.state, "members": group.member_count}
            for group in groups
        ],
        Table(
            headings=("Group", "State", "Members"),
            rows=[(group.group_id, group.state, group.member_count) for group in groups],
            empty="No groups yet: semel consume TOPIC --group NAME",
        ),
    )
    listed.check()


@app.command(epilog=examples("semel groups describe reports"))
def describe(
    group: Annotated[str, typer.Argument(show_default=False)],
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Describe a group: its members, and how far it is in each partition.

    The lag is the number of committed records that the group has not read, markers and aborted
    records left out.
    """

    async def work(client: "SemelClient") -> "tuple[GroupDescription, list[GroupOffset]]":
        from semel_console.insight.offset_views import group_offsets

        described = await client.admin().describe_group(group)
        return described, await group_offsets(client, group)

    with progress("Counting records…"):
        described, offsets = with_client(bootstrap, work)
    holders = {
        partition: member.member_id
        for member in described.members
        for partition in member.assignment
    }
    show(
        output_format,
        _document(described, offsets, holders),
        Facts(
            {
                "Group": described.group_id,
                "State": described.state,
                "Epoch": described.group_epoch,
                "Assignor": described.assignor,
                "Members": len(described.members),
                "Open transactions": len(described.pending),
            }
        ),
        _offsets_table(offsets, holders),
        _members_table(described),
    )


app.command("reset-offsets", epilog=RESET_EXAMPLES)(reset_offsets)
app.command("delete-offsets", epilog=DELETE_OFFSETS_EXAMPLES)(delete_offsets)
app.command(epilog=DELETE_EXAMPLES)(delete)


def _offsets_table(offsets: "Iterable[GroupOffset]", holders: "dict[TopicPartition, str]") -> Table:
    from semel_console.insight.texts import since_text

    now_ms = time.time_ns() // 1_000_000
    known = {each.partition: each for each in offsets}
    rows = []
    for partition in sorted({*known, *holders}):
        offset = known.get(partition)
        rows.append(
            (
                partition.topic,
                partition.partition,
                None if offset is None else offset.committed,
                None if offset is None else offset.stable_end,
                None if offset is None else offset.lag,
                None if offset is None else since_text(offset.oldest_ms, now_ms),
                holders.get(partition),
            )
        )
    return Table(
        headings=(
            *("Topic", "Partition", "Committed", "Stable end", "Lag", "Oldest unread"),
            "Member",
        ),
        rows=rows,
        empty="The group has committed no offsets.",
    )


def _members_table(described: "GroupDescription") -> Table:
    from semel_console.insight.texts import ago_text

    return Table(
        headings=(
            *("Member", "Instance", "Epoch", "Subscribed to", "Holds", "Is to hold"),
            *("Who", "From", "Heard of", "Polled"),
        ),
        rows=[
            (
                member.member_id,
                member.group_instance_id or None,
                "away" if member.member_epoch == _AWAY else member.member_epoch,
                ", ".join(member.subscribed_topics),
                " ".join(map(str, member.assignment)),
                " ".join(map(str, member.target)),
                member.principal or None,
                member.address or None,
                ago_text(member.heartbeat_age_ms),
                ago_text(member.poll_age_ms),
            )
            for member in described.members
        ],
        empty="The group has no members.",
    )


def _document(
    described: "GroupDescription",
    offsets: "Iterable[GroupOffset]",
    holders: "dict[TopicPartition, str]",
) -> Json:
    return {
        "group_id": described.group_id,
        "state": described.state,
        "group_epoch": described.group_epoch,
        "assignor": described.assignor,
        "members": [
            document(
                member,
                client_id=member.client_id or None,
                principal=member.principal or None,
            )
            for member in described.members
        ],
        "offsets": [
            {
                **each.partition._asdict(),
                "committed_offset": each.committed,
                "last_stable_offset": each.stable_end,
                "lag": each.lag,
                "oldest_unread_ms": each.oldest_ms,
                "member_id": holders.get(each.partition),
            }
            for each in offsets
        ],
        "open_transactions": [
            document(
                each,
                offsets=[{**at._asdict(), "offset": offset} for at, offset in each.offsets.items()],
            )
            for each in described.pending
        ],
    }
