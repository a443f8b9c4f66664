"""What options of several commands may hold, and what they hold by default."""

import getpass
import socket

import typer


def not_empty(given: str | None) -> str | None:
    """Refuse what a shell leaves of a variable that is not set: it names nothing, not everything.

    Raises typer.BadParameter.
    """
    if given is not None and not given:
        raise typer.BadParameter("is empty: name something, or leave the option out")
    return given


def whoami() -> str:
    """Return who runs this command, for a log: user@host."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):
        return f"unknown@{socket.gethostname()}"


def is_on_command_line(context: typer.Context, option: str) -> bool:
    """Whether an option was given there, and neither by the environment nor by default."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"
