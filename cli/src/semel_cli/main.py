"""The command `semel` and its subcommands. Each is a module of its own, and imports late."""

import typer

from semel_cli import up
from semel_cli.output import examples

app = typer.Typer(
    name="semel",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A transactional log with Kafka's exactly-once semantics.",
    epilog=examples(
        "semel up                                   # then, in another terminal:",
        "semel topics create greetings",
        "echo hello | semel produce greetings",
        "semel consume greetings --from-beginning",
    ),
)
app.command(epilog=up.EXAMPLES)(up.up)


@app.callback()
def semel() -> None:
    """Have subcommands even while there is only one."""


def main() -> None:
    """Run the command line."""
    app()
