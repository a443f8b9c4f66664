"""`semel topics configs` and `semel topics alter`: the options of a topic."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.options import INT32_MAX
from semel_cli.output import Facts, Format, FormatOption, Table, examples, note, show
from semel_cli.session import BootstrapOption, UsageError, fail, with_client

if TYPE_CHECKING:
    from aiosemel import SemelClient
    from aiosemel.descriptions import ConfigDescription

TopicArgument = Annotated[str, typer.Argument(show_default=False)]
ConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        metavar="NAME=VALUE",
        help="Set an option, such as retention.ms=3600000. `semel topics configs` lists them.",
        show_default=False,
    ),
]
ALTER_EXAMPLES = examples(
    "semel topics alter orders --config retention.ms=86400000 --dry-run",
    "semel topics alter orders --partitions 8",
    "semel topics alter prices --config cleanup.policy=compact \\",
    "    --reset retention.ms",
)
CONFIGS_EXAMPLES = examples("semel topics configs orders")


def read_configs(given: list[str] | None) -> dict[str, str]:
    """Read options from NAME=VALUE; ends the command if one is not written so."""
    found: dict[str, str] = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not name or not equals:
            fail(f"--config {each!r} is not NAME=VALUE", 2)
        if name in found:
            fail(f"--config names {name} twice: {found[name]} and {value}", 2)
        found[name] = value
    return found


def configs(
    topic: TopicArgument,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """List all options of a topic: what holds, what would hold by default, and what it does."""

    async def work(client: "SemelClient") -> "dict[str, ConfigDescription]":
        return await client.admin().describe_configs(topic)

    described = with_client(bootstrap, work).values()
    show(
        output_format,
        {
            each.name: {
                "value": each.value,
                "default": each.default_value,
                "is_default": each.is_default,
                "documentation": each.documentation,
            }
            for each in described
        },
        Table(
            headings=("Option", "Value", "Default", "Meaning"),
            rows=[
                (each.name, each.value, each.default_value, each.documentation)
                for each in described
            ],
        ),
    )


def alter(
    topic: TopicArgument,
    config: ConfigOption = None,
    reset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Give an option its default.", show_default=False),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            "-p",
            min=1,
            max=INT32_MAX,
            help="Let it have more partitions, so many all together. Records with a key go to other"
            " partitions from then on than before.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and show, but change nothing.")
    ] = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Change options of a topic, or give it more partitions; shows what holds then.

    If one of the changes is refused, none is made.
    """
    wanted = read_configs(config)
    if not wanted and not reset and partitions is None:
        raise UsageError(
            "nothing to change: give --config NAME=VALUE, --reset NAME or --partitions NUMBER"
        )

    async def work(client: "SemelClient") -> tuple[int, dict[str, str]]:
        admin = client.admin()
        count = len((await admin.describe_topic(topic)).partitions)
        change = partial(
            admin.incremental_alter_configs, topic, set_configs=wanted, reset=reset or ()
        )
        if partitions is not None:
            await change(validate_only=True)  # Partitions stay: what is refused comes before them.
            count = await admin.create_partitions(topic, partitions, validate_only=dry_run)
        return count, await change(validate_only=dry_run)

    count, altered = with_client(bootstrap, work)
    note(f"{topic} {'would be' if dry_run else 'is'} changed")
    show(
        output_format,
        {"topic": topic, "dry_run": dry_run, "partitions": count, "configs": altered},
        Facts({"Topic": topic, "Partitions": count}),
        Table(
            headings=("Option", "Value"),
            rows=list(altered.items()),
            empty="All options have their defaults.",
        ),
    )
