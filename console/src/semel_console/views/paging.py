"""How much one page shows: pages stay small, and say what they leave out. No I/O.

A list whose next lines have an address of their own takes ``fitting`` lines, so that the next page
begins where this one ends. ``within`` cuts a page that is too large nevertheless: each table and
each chart gets what the rest of the page leaves.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import TypeVar

from semel_console.insight.texts import counted, visible
from semel_console.views.blocks import (
    Bar,
    Block,
    Cell,
    Chart,
    Columns,
    Facts,
    Grid,
    Missing,
    Page,
    Row,
    Section,
)

PAGE_BYTES_MAX = 64 << 10
"""The bytes of a whole page as HTML."""
LIST_BYTES_MAX = 40 << 10
"""The bytes of the lines of a list."""
TEXT_MAX = 4_200
"""The characters of a cell: a little more than the 4 KB of a payload."""
_TEXT_MIN = 200
"""The characters that a cell keeps on the fullest page."""

_ROW_BYTES = 25
_CELL_BYTES = 48
"""The tags around a value, with their classes."""
_LINK_BYTES = 15
_METER_BYTES = 115
_BAR_BYTES = 330
_COLUMN_BYTES = 420

Item = TypeVar("Item")


def fitting(
    rows: Sequence[Row], rows_max: int, *, bytes_max: int = LIST_BYTES_MAX
) -> Sequence[Row]:
    """Return the first lines, as many as one page has: at least one."""
    return _first(rows[:rows_max], _weight_of_row, bytes_max)


def note_of_cut(shown: Block, listed: Sequence[object] | Missing, command: str) -> str:
    """Return the sentence about lines that a page leaves out; empty: it has all."""
    if isinstance(listed, Missing) or not isinstance(shown, Grid) or len(shown.rows) == len(listed):
        return ""
    return f"The page shows the first {len(shown.rows)} of {len(listed)}; {command} lists all."


def within(page: Page, bytes_max: int) -> Page:
    """Return a page whose blocks have about so many bytes, but at least one line each."""
    text_max = max(_TEXT_MIN, min(TEXT_MAX, bytes_max // 4))
    to_come = sum(_weight(block) for section in page.sections for block in section.blocks)
    left = bytes_max
    sections = []
    for section in page.sections:
        blocks, notes = [], [section.note]
        for block in section.blocks:
            to_come -= _weight(block)
            shown, note = _cut(block, max(left - to_come, left // 2), text_max)
            left = max(0, left - _weight(shown))
            blocks.append(shown)
            notes.append(note)
        note = " ".join(filter(None, notes))
        sections.append(Section(title=section.title, blocks=blocks, note=note))
    return replace(page, sections=sections)


def _cut(block: Block, bytes_max: int, text_max: int) -> tuple[Block, str]:
    """Return as much of a block as there is room for, and a sentence about the rest."""
    match block:
        case Grid():
            rows = [
                Row(cells=[_short(value, text_max) for value in row.cells], tone=row.tone)
                for row in block.rows
            ]
            shown_rows = _first(rows, _weight_of_row, bytes_max)
            return replace(block, rows=shown_rows), _note("line", len(shown_rows), len(rows))
        case Chart():
            bars = _first(block.bars, _weight_of_bar, bytes_max)
            return replace(block, bars=bars), _note("bar", len(bars), len(block.bars))
        case Facts():
            pairs = [(name, _short(value, text_max)) for name, value in block.pairs]
            return Facts(pairs=pairs), ""
        case _:
            return block, ""


def _note(what: str, shown: int, count: int) -> str:
    return f"The page shows the first {shown} of {counted(count, what)}." if shown < count else ""


def _short(value: Cell, text_max: int) -> Cell:
    if len(value.text) <= text_max:
        return value
    return replace(value, text=f"{value.text[:text_max]} … ({len(value.text):,} characters)")


def _first(
    items: Sequence[Item], weight_of: Callable[[Item], int], bytes_max: int
) -> Sequence[Item]:
    weight = 0
    for count, item in enumerate(items):
        weight += weight_of(item)
        if weight > bytes_max and count:
            return items[:count]
    return items


def _weight(block: Block) -> int:
    match block:
        case Grid():
            return sum(map(_weight_of_row, block.rows))
        case Chart():
            return sum(map(_weight_of_bar, block.bars))
        case Columns():
            return sum(_COLUMN_BYTES + 2 * _length(each.text) for each in block.columns)
        case Facts():
            return sum(_weight_of_cell(value) for _, value in block.pairs)
        case _:
            return _CELL_BYTES


def _weight_of_row(row: Row) -> int:
    return _ROW_BYTES + sum(map(_weight_of_cell, row.cells))


def _weight_of_cell(value: Cell) -> int:
    weight = _CELL_BYTES + _length(value.text)
    if value.href:
        weight += _LINK_BYTES + _length(value.href)
    return weight if value.share is None else weight + _METER_BYTES


def _weight_of_bar(bar: Bar) -> int:
    return _BAR_BYTES + _length(bar.label) + _length(bar.text) + _length(bar.href)


def _length(text: str) -> int:
    return len(escape(visible(text)).encode())
