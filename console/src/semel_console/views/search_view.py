"""The finds of a search: topics, groups and transactional ids. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from semel_console.insight.command_lines import command_line, shell_line
from semel_console.views import places
from semel_console.views.blocks import Cell, Grid, Missing, Notice, Page, Row, Section

FOUND_MAX = 50


_KINDS = ("Topics", "Groups", "Transactional ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finds:
    """The finds of one kind."""

    links: Sequence[Cell]
    missing: Sequence[Missing]
    """The lists that are not here: they may have more finds."""


def search_page(text: str, found: Sequence[Finds]) -> Page:
    """Return the topics, groups and transactional ids that were found, each as a link."""
    hint = Section(title="", blocks=(Notice(text="Type a part of a name into the field above."),))
    kinds = [_section(kind, finds) for kind, finds in zip(_KINDS, found, strict=False)]
    return Page(
        title=f"Search: {text}" if text else "Search",
        command=_command(text) if text else "",
        sections=kinds if text else (hint,),
        is_live=False,
    )


def _command(text: str) -> str:
    """Return the three commands that find the same names, in one line."""
    having = shell_line("grep", "-F", "--", text)
    return "; ".join(
        (
            f"{command_line('topics', 'list')} | {having}",
            f"{command_line('groups', 'list')} | {having}",
            command_line("transactions", "list", "--id-pattern", places.containing(text)),
        )
    )


def _section(kind: str, finds: Finds) -> Section:
    """Return the finds of one kind, and the lists in which there may be more."""
    links = finds.links
    is_cut = len(links) > FOUND_MAX
    grid = Grid(
        headings=("Name",),
        rows=[Row(cells=(each,)) for each in links[:FOUND_MAX]],
        empty="No name has this text.",
    )
    return Section(
        title=kind,
        note=f"More than {FOUND_MAX} names have this text: these are the first." if is_cut else "",
        blocks=(*finds.missing, grid) if links or not finds.missing else finds.missing,
    )
