"""How much of a list one page has: pages stay small, however long names are. No I/O."""

from collections.abc import Sequence
from html import escape

from semel_console.views.blocks import Block, Grid, Missing, Row

WEIGHT_MAX = 44 << 10
"""The bytes of a table's lines; a whole page has at most 64 KiB."""
_CELL_BYTES = 40
"""The tags around a value."""


def fitting(rows: Sequence[Row], rows_max: int) -> Sequence[Row]:
    """Return the first lines, as many as one page has: at least one."""
    weight = 0
    for count, row in enumerate(rows[:rows_max]):
        weight += sum(
            _CELL_BYTES + len(escape(cell.text).encode()) + len(escape(cell.href).encode())
            for cell in row.cells
        )
        if weight > WEIGHT_MAX and count:
            return rows[:count]
    return rows[:rows_max]


def note_of_cut(shown: Block, listed: Sequence[object] | Missing, command: str) -> str:
    """Return the sentence about lines that a page leaves out; empty: it has all."""
    if isinstance(listed, Missing) or not isinstance(shown, Grid) or len(shown.rows) == len(listed):
        return ""
    return f"The page shows the first {len(shown.rows)} of {len(listed)}; {command} lists all."
