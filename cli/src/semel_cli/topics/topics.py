"""`semel topics`: create, list, describe, alter, move, delete."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.cluster.moves import MOVE_EXAMPLES, move
from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_session import with_client
from semel_cli.shared.many_things import Outcomes, each_of
from semel_cli.shared.options import INT32_MAX
from semel_cli.shared.output import Facts, Format, FormatOption, Json, Table, examples, note, show
from semel_cli.shared.questions import confirm_each
from semel_cli.topics.configs import (
    ALTER_EXAMPLES,
    CONFIGS_EXAMPLES,
    ConfigOption,
    alter,
    configs,
    read_configs,
)
from semel_cli.topics.delete_records import EXAMPLES as DELETE_RECORDS_EXAMPLES
from semel_cli.topics.delete_records import delete_records

if TYPE_CHECKING:
    from aiosemel import SemelClient, TopicDescription
    from semel_console.insight.offset_views import Watermarks

app = typer.Typer(
    help="Create, list, describe, alter, move and delete topics.", no_args_is_help=True
)

TopicArguments = Annotated[list[str], typer.Argument(metavar="TOPIC", show_default=False)]
TopicArgument = Annotated[str, typer.Argument(show_default=False)]


@app.command(
    epilog=examples(
        "semel topics create orders --partitions 4",
        "semel topics create orders income --if-not-exists",
        "semel topics create prices --config cleanup.policy=compact",
    )
)
def create(
    topics: TopicArguments,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, max=INT32_MAX, show_default="as the cluster is set up"
        ),
    ] = None,
    config: ConfigOption = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave an existing topic as it is.")
    ] = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Create topics, and spread their partitions over the brokers.

    Each for itself: if one is refused, the others are still created.
    """
    options = read_configs(config)

    async def work(client: "SemelClient") -> "Outcomes[TopicDescription]":
        create_topic = partial(
            client.admin().create_topic,
            partitions=partitions,
            configs=options,
            exist_ok=if_not_exists,
        )
        return await each_of(topics, create_topic)

    created = with_client(bootstrap, work, changes=True)
    if created.done:
        show_topics(created.done, output_format)
    created.check()


@app.command("list", epilog=examples("semel topics list", "semel topics list --format json"))
def list_topics(
    output_format: FormatOption = Format.TEXT, bootstrap: BootstrapOption = None
) -> None:
    """List all topics."""
    show_topics(with_client(bootstrap, lambda client: client.admin().list_topics()), output_format)


@app.command(epilog=examples("semel topics describe orders"))
def describe(
    topic: TopicArgument,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Describe a topic: who leads its partitions, where they move, and which offsets they hold.

    Readers of committed records read up to the stable end. Where it stays behind the end, a
    transaction is open: `semel transactions list` tells which.
    """

    async def work(client: "SemelClient") -> "tuple[TopicDescription, list[Watermarks]]":
        from semel_console.insight.offset_views import watermarks

        described = await client.admin().describe_topic(topic)
        partitions = [(topic, partition.partition) for partition in described.partitions]
        return described, await watermarks(client, partitions)

    described, offsets = with_client(bootstrap, work)
    rows = list(zip(described.partitions, offsets, strict=True))
    partitions: list[Json] = [
        {
            "partition": each.partition,
            "leader_id": each.leader_id,
            "leader_epoch": each.leader_epoch,
            "moving_to": each.moving_to,
            "log_start_offset": marks.start,
            "last_stable_offset": marks.stable_end,
            "high_watermark": marks.end,
        }
        for each, marks in rows
    ]
    show(
        output_format,
        {
            "name": described.name,
            "topic_id": described.topic_id,
            "configs": dict(described.configs),
            "partitions": partitions,
        },
        Facts({"Topic": described.name, "Id": described.topic_id, **described.configs}),
        Table(
            headings=("Partition", "Leader", "Moving to", "Start", "Stable end", "End"),
            rows=[
                (
                    each.partition,
                    f"broker-{each.leader_id}",
                    None if each.moving_to is None else f"broker-{each.moving_to}",
                    marks.start,
                    marks.stable_end,
                    marks.end,
                )
                for each, marks in rows
            ],
        ),
    )


@app.command(epilog=examples("semel topics delete orders income --yes"))
def delete(
    topics: TopicArguments,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Pass over a missing topic.")
    ] = False,
    bootstrap: BootstrapOption = None,
) -> None:
    """Delete topics with all their records.

    Each for itself: if one is refused, the others are still deleted.
    """
    asked = Outcomes(topics, []) if yes else _ask_about(topics, bootstrap, if_exists=if_exists)

    async def work(client: "SemelClient") -> "Outcomes[None]":
        async def delete_topic(name: str) -> None:
            await client.admin().delete_topic(name, missing_ok=if_exists)
            note(f"{name} is deleted")

        return await each_of(asked.done, delete_topic)

    deleted = with_client(bootstrap, work, changes=True)
    Outcomes(deleted.done, [*asked.refused, *deleted.refused]).check()


def _ask_about(topics: list[str], bootstrap: str | None, *, if_exists: bool) -> Outcomes[str]:
    """Return the existing ones."""
    from aiosemel.errors import UnknownTopicOrPartitionError

    asked = confirm_each(
        topics,
        lambda client, name: client.admin().describe_topic(name),
        lambda names: f"Delete {names} with all records?",
        bootstrap=bootstrap,
    )
    if not if_exists:
        return asked
    others = [each for each in asked.refused if not isinstance(each, UnknownTopicOrPartitionError)]
    return Outcomes(asked.done, others)


app.command(epilog=ALTER_EXAMPLES)(alter)
app.command(epilog=CONFIGS_EXAMPLES)(configs)
app.command("delete-records", epilog=DELETE_RECORDS_EXAMPLES)(delete_records)
app.command(epilog=MOVE_EXAMPLES)(move)


def show_topics(topics: "Sequence[TopicDescription]", output_format: Format) -> None:
    """Show topics, one a line."""
    show(
        output_format,
        [
            {"name": topic.name, "topic_id": topic.topic_id, "partitions": len(topic.partitions)}
            for topic in topics
        ],
        Table(
            headings=("Topic", "Partitions", "Id"),
            rows=[(topic.name, len(topic.partitions), topic.topic_id) for topic in topics],
            empty="No topics yet: semel topics create NAME",
        ),
    )
