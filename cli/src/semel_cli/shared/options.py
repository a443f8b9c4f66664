"""The types and defaults of options that several commands share."""

import getpass
import socket
from pathlib import Path
from typing import Annotated

import typer

INT32_MAX = 2**31 - 1
"""Of partitions, and of instances."""
INT64_MAX = 2**63 - 1
"""Of offsets, timestamps, producer ids and epochs."""
SECONDS_MAX = 10**9

_EMPTY = "is empty: name something, or leave the option out"


def not_empty(given: str | None) -> str | None:
    """Refuse what a shell leaves of a variable that is not set: it names nothing, not everything.

    Raises typer.BadParameter.
    """
    if given is not None and not given:
        raise typer.BadParameter(_EMPTY)
    return given


def path(given: str) -> Path:
    """Read a path; an empty one would be the folder that the command happens to run in.

    Raises typer.BadParameter.
    """
    if not given:
        raise typer.BadParameter(_EMPTY)
    return Path(given)


def seconds(given: float | None) -> float | None:
    """Refuse what no clock counts, such as inf. Raises typer.BadParameter."""
    if given is None or 0 <= given <= SECONDS_MAX:
        return given
    raise typer.BadParameter(f"{given} is no number of seconds from 0 to {SECONDS_MAX}")


ReasonOption = Annotated[str, typer.Option(help="For the audit.", show_default=False)]


def is_int32(text: str) -> bool:
    """Whether a text is the number of a partition or of an instance."""
    digits_max = len(str(INT32_MAX))
    return text.isdecimal() and len(text) <= digits_max and int(text) <= INT32_MAX


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
