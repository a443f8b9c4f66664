"""Tables for people, tabs for pipes, JSON for programs."""

import errno
import io
import json
from collections.abc import Sequence

import pytest

from semel_cli.shared.output import (
    Cell,
    Facts,
    Format,
    OutputError,
    Table,
    show,
)

TABLE = Table(headings=("Name", "Last seen"), rows=[("a\tb", 1), (None, 20)])


class Terminal(io.StringIO):
    """Standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    """Standard output on a full disk: that shows once it is flushed."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Let standard output be a terminal from now on."""
    fake = Terminal()
    monkeypatch.setattr("sys.stdout", fake)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    return fake


def test_piped_text_has_tabs_and_no_decoration(capsys: pytest.CaptureFixture[str]) -> None:
    show(Format.TEXT, None, Facts({"Id": "x", "Empty": ""}), TABLE)
    assert capsys.readouterr().out == "Id\tx\nEmpty\t-\n\nNAME\tLAST-SEEN\na b\t1\n-\t20\n"


def test_json_is_the_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    show(Format.JSON, {"name": "ä", "none": None}, TABLE)
    assert json.loads(capsys.readouterr().out) == {"name": "ä", "none": None}


@pytest.mark.parametrize("output_format", Format)
def test_an_output_that_takes_nothing_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, output_format: Format
) -> None:
    monkeypatch.setattr("sys.stdout", Full())
    with pytest.raises(OutputError, match="cannot be written: No space left"):
        show(output_format, None, TABLE)


def test_a_terminal_shows_a_table_with_numbers_to_the_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = use_terminal(monkeypatch)
    show(Format.TEXT, None, Facts({"Id": "[x]"}), TABLE)
    lines = [line.rstrip() for line in terminal.getvalue().splitlines()]
    assert lines[0] == "Id  [x]"
    assert any(line.endswith("        20") for line in lines)


@pytest.mark.parametrize("name", ["[/x]", "[red]", "{0.__class__}", "%(name)s %"])
def test_a_terminal_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    terminal = use_terminal(monkeypatch)
    rows: list[Sequence[Cell]] = [(name,)]
    show(Format.TEXT, None, Facts({"Id": name}, title=name), Table(headings=("Name",), rows=rows))
    show(Format.TEXT, None, Table(headings=("Name",), rows=[], empty=f"{name} is empty."))
    assert terminal.getvalue().count(name) == 4


def test_a_terminal_says_what_an_empty_table_means(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = use_terminal(monkeypatch)
    show(Format.TEXT, None, Table(headings=("Name",), rows=[], empty="None yet."))
    assert terminal.getvalue() == "None yet.\n"
