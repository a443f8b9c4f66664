"""What the command line says of itself."""

import sys
from collections.abc import Iterator
from importlib.metadata import version
from types import ModuleType

import pytest
import typer
from command_line import CommandLine

from semel_cli.__main__ import main
from semel_cli.main import app

Path = tuple[str, ...]


def paths(part: typer.Typer, before: Path = ()) -> Iterator[Path]:
    """Yield all commands, by the words that lead to each."""
    for command in part.registered_commands:
        assert command.callback is not None
        yield (*before, command.name or command.callback.__name__.replace("_", "-"))
    for group in part.registered_groups:
        assert group.typer_instance is not None
        yield from paths(group.typer_instance, (*before, str(group.name)))


COMMANDS = sorted(paths(app))


def test_the_commands_are_the_promised_ones() -> None:
    assert [" ".join(path) for path in COMMANDS] == [
        "acls add",
        "acls list",
        "acls remove",
        "audit",
        "check",
        "cluster decommission",
        "cluster describe",
        "cluster moves",
        "cluster rebalance",
        "console",
        "consume",
        "demo application",
        "demo income",
        "demo orders",
        "demo pizza",
        "doctor",
        "groups delete",
        "groups delete-offsets",
        "groups describe",
        "groups list",
        "groups reset-offsets",
        "produce",
        "quotas list",
        "quotas remove",
        "quotas set",
        "recover",
        "topics alter",
        "topics configs",
        "topics create",
        "topics delete",
        "topics delete-records",
        "topics describe",
        "topics list",
        "topics move",
        "transactions abort",
        "transactions complete",
        "transactions describe",
        "transactions describe-producers",
        "transactions fence",
        "transactions find-hanging",
        "transactions history",
        "transactions list",
        "transactions outcome",
        "transactions resolve",
        "transactions timeline",
        "up",
        "why",
    ]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_examples(path: Path) -> None:
    out = CommandLine({"COLUMNS": "100"})(*path, "--help").out
    assert "Examples" in out
    assert f"semel {' '.join(path)}" in out
    assert CommandLine({"COLUMNS": "100"})(*path, "-h").out == out


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_examples_fit_a_terminal_of_80_columns(path: Path) -> None:
    """One that is wrapped cannot be pasted."""
    narrow, wide = (CommandLine({"COLUMNS": each})(*path, "--help").out for each in ("80", "200"))
    assert example_lines(narrow) == example_lines(wide)


def example_lines(shown: str) -> list[str]:
    """Return the lines of a help's examples."""
    return [line.strip() for line in shown.partition("Examples")[2].splitlines()]


def test_the_first_help_shows_where_to_begin() -> None:
    assert "semel up" in CommandLine({})("--help").out


def test_the_version_is_that_of_the_package() -> None:
    assert CommandLine({})("--version").out == f"semel {version('semel')}\n"


def test_ctrl_c_while_it_is_imported_ends_it_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "semel_cli.main", Interrupted("semel_cli.main"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""


class Interrupted(ModuleType):
    """A module during whose import Ctrl-C is pressed."""

    def __getattr__(self, name: str) -> None:
        raise KeyboardInterrupt(name)
