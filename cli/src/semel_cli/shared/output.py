"""What commands show: tables for people on a terminal, tab-separated when piped, JSON for programs.

Results go to standard output, everything else (progress, notes, errors) to standard error.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

from semel_common.untrusted_text import printable

Cell: TypeAlias = str | int | None
Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"


class Format(StrEnum):
    """How a command shows its result."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[
    Format, typer.Option("--format", help="text: tables for people; json: for programs.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows with a heading for each column; numbers are numbers, and None is nothing."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    right: bool = False
    """Whether all columns but the first hold numbers that are written as text."""
    empty: str = ""
    """What a person is told in place of a table without rows."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with a value each."""

    values: Mapping[str, Cell]
    title: str = ""


def are(count: int) -> str:
    """Return the verb after ``counted``."""
    return "is" if count == 1 else "are"


class OutputError(Exception):
    """Standard output takes nothing any more; the message says why."""


@contextmanager
def to_standard_output() -> Iterator[None]:
    """Raise OutputError for a failed write; BrokenPipeError if the reader is gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output cannot be written: {error.strerror}") from error


def show(output_format: Format, document: Json, *blocks: Table | Facts) -> None:
    """Show a result: the document to programs, the blocks to people. Raises OutputError."""
    with to_standard_output():
        if output_format is Format.JSON:
            indent = 2 if sys.stdout.isatty() else None
            print(json.dumps(document, indent=indent, ensure_ascii=False))
        elif sys.stdout.isatty():
            _show_rich(blocks)
        else:
            print("\n\n".join("\n".join(_plain_lines(block)) for block in blocks))
        sys.stdout.flush()


def note(sentence: str) -> None:
    """Tell a person something that is no result; see ``standard_error`` for notices that fail."""
    print(sentence, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show on a terminal that something takes its time."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(what)):
        yield


def examples(*lines: str) -> str:
    """Return command lines as the last part of a command's help."""
    return "\n".join(("**Examples**", "", "```", *lines, "```"))


def _show_rich(blocks: Iterable[Table | Facts]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    # Titles hold names that users chose: a bracket in a name is no markup.
    console = Console(highlight=False, markup=False)
    for block in blocks:
        if isinstance(block, Facts):
            grid = RichTable.grid(padding=(0, 2))
            if block.title:
                console.print(Text(f"\n{block.title}", style="bold"))
            for name, value in block.values.items():
                grid.add_row(Text(name, style="dim"), Text(_text(value)))
            console.print(grid)
        elif not block.rows and block.empty:
            console.print(block.empty)
        else:
            table = RichTable(box=SIMPLE_HEAD, title=block.title or None, title_justify="left")
            for number, heading in enumerate(block.headings):
                is_number = any(isinstance(row[number], int) for row in block.rows) or (
                    block.right and number > 0
                )
                table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
            for row in block.rows:
                table.add_row(*(Text(_text(cell)) for cell in row))
            console.print(table)


def _plain_lines(block: Table | Facts) -> Iterator[str]:
    if isinstance(block, Facts):
        if block.title:
            yield block.title
        yield from (f"{name}\t{_text(value)}" for name, value in block.values.items())
        return
    yield "\t".join(heading.upper().replace(" ", "-") for heading in block.headings)
    for row in block.rows:
        yield "\t".join(map(_text, row))


def _text(cell: Cell) -> str:
    """Return what is shown: names come from other users of the cluster, or from its servers."""
    return "-" if cell is None or cell == "" else printable(str(cell).replace("\t", " "))
