"""The finds of a search: topics, groups and transactional ids. No I/O."""

import shlex
from collections.abc import Sequence

from semel_console.insight.command_lines import command_line
from semel_console.views import places
from semel_console.views.blocks import Block, Cell, Grid, Missing, Notice, Page, Row, Section

FOUND_MAX = 50


def search_page(
    text: str,
    topics: Sequence[Cell] | Missing,
    groups: Sequence[Cell] | Missing,
    ids: Sequence[Cell] | Missing,
) -> Page:
    """Return what was found, each as a link."""
    if not text:
        sections: Sequence[Section] = (
            Section(title="", blocks=(Notice(text="Type a part of a name into the field above."),)),
        )
    else:
        sections = (
            Section(title="Topics", note=_cut(topics), blocks=(_found(topics),)),
            Section(title="Groups", note=_cut(groups), blocks=(_found(groups),)),
            Section(title="Transactional ids", note=_cut(ids), blocks=(_found(ids),)),
        )
    return Page(
        title=f"Search: {text}" if text else "Search",
        command=_command(text) if text else "",
        sections=sections,
        is_live=False,
    )


def _command(text: str) -> str:
    """Return the three commands that find the same names, in one line."""
    having = shlex.join(["grep", "-F", "--", text])
    return "; ".join(
        (
            f"{command_line('topics', 'list')} | {having}",
            f"{command_line('groups', 'list')} | {having}",
            command_line("transactions", "list", "--id-pattern", places.containing(text)),
        )
    )


def _cut(names: Sequence[Cell] | Missing) -> str:
    """Return the sentence about finds that the page leaves out; empty: it has all."""
    if isinstance(names, Missing) or len(names) <= FOUND_MAX:
        return ""
    return f"More than {FOUND_MAX} names have this text: these are the first."


def _found(names: Sequence[Cell] | Missing) -> Block:
    if isinstance(names, Missing):
        return names
    return Grid(
        headings=("Name",),
        rows=[Row(cells=(name,)) for name in names[:FOUND_MAX]],
        empty="No name has this text.",
    )
