"""`semel topics configs` and `semel topics alter`: the options of a topic."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.shared.cluster_choice import BootstrapOption
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import fail, with_client
from semel_cli.shared.options import INT32_MAX
from semel_cli.shared.output import Facts, Format, FormatOption, Table, examples, note, show

if TYPE_CHECKING:
    from aiosemel import ConfigDescription, SemelClient

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
    for setting in given or ():
        name, equals, value = setting.partition("=")
        if not name or not equals:
            fail(f"--config {setting!r} is not NAME=VALUE", 2)
        if name in found:
            fail(f"--config names {name} twice: {found[name]} and {value}", 2)
        found[name] = value
    return found


def configs(
    topic: TopicArgument,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """List all options of a topic: the value, the default, and the effect of each."""

    async def work(client: "SemelClient") -> "dict[str, ConfigDescription]":
        return await client.admin().describe_configs(topic)

    described = with_client(bootstrap, work).values()
    show(
        output_format,
        {
            description.name: {
                "value": description.value,
                "default": description.default_value,
                "is_default": description.is_default,
                "documentation": description.documentation,
            }
            for description in described
        },
        Table(
            headings=("Option", "Value", "Default", "Meaning"),
            rows=[
                (
                    description.name,
                    description.value,
                    description.default_value,
                    description.documentation,
                )
                for description in described
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
            help="Raise the number of partitions to this. From then on, records with a key may go"
            " to another partition than before.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and show, but change nothing.")
    ] = False,
    output_format: FormatOption = Format.TEXT,
    bootstrap: BootstrapOption = None,
) -> None:
    """Change options of a topic, or give it more partitions; shows the result.

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

    count, altered = with_client(bootstrap, work, changes=not dry_run)
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
