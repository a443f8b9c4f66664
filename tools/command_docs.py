"""The page of commands: what Typer makes of the help of `semel` and of its subcommands."""

import re
import subprocess
import sys
from collections.abc import Iterator

_TYPER = (sys.executable, "-m", "typer", "semel_cli.main", "utils", "docs", "--name", "semel")
_USAGE = re.compile(r"\*\*Usage\*\*:\n\n```console\n\$ (.*?)\n```", re.DOTALL)
_INTRODUCTION = (
    "`semel --help` and `semel COMMAND --help` show the same in a terminal. Every command that",
    "calls a cluster also takes the options of `semel` itself.",
)


def commands_page() -> Iterator[str]:
    """Return the lines of docs/reference/commands.md."""
    shown = subprocess.run(_TYPER, check=True, capture_output=True, text=True).stdout
    yield from _INTRODUCTION
    yield ""
    yield from _in_plain_blocks(shown.replace("# `semel`\n", "## `semel`\n", 1)).splitlines()


def _in_plain_blocks(shown: str) -> str:
    """Return the page with each usage as text, because a reader cannot type it as it is."""
    return _USAGE.sub(r"```text\n\1\n```", shown).replace("\n\n\n", "\n\n")
