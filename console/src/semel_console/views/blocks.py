"""The parts that pages are made of, as plain values: cells, tables, facts, charts. No I/O.

A template renders each of them in one place, and escapes every text there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar


class Tone(StrEnum):
    """How much a cell or a notice asks for attention; the words say the same."""

    PLAIN = "plain"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    MUTED = "muted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value of a table or of a list of facts."""

    text: str
    href: str = ""
    """Where the thing is described; empty: nowhere."""
    tone: Tone = Tone.PLAIN
    is_badge: bool = False
    """Whether it is drawn as a state, and not as a text."""
    is_code: bool = False
    """Whether it is written in letters of one width, as commands and payloads are."""
    share: float | None = None
    """From 0 to 1: how much of a bar below the text is filled. None: there is no bar."""
    is_neutral: bool = False
    """Whether a full bar is nothing to worry about: it has one colour, however full it is."""


NOTHING = Cell(text="-", tone=Tone.MUTED)
"""A value that is unknown, or does not exist; a zero is a zero."""


def cell(value: str | int | None, tone: Tone = Tone.PLAIN) -> Cell:
    """Return a value as it is; whole numbers keep every digit."""
    return NOTHING if value is None or value == "" else Cell(text=str(value), tone=tone)


def link(value: str | int, href: str) -> Cell:
    """Return a value that leads to its page."""
    return Cell(text=str(value), href=href)


def badge(text: str, tone: Tone) -> Cell:
    """Return a state."""
    return Cell(text=text, tone=tone, is_badge=True)


def code(text: str) -> Cell:
    """Return a text in letters of one width."""
    return Cell(text=text, is_code=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table."""

    cells: Sequence[Cell]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table."""

    kind: ClassVar[str] = "grid"
    headings: Sequence[str]
    rows: Sequence[Row]
    numbers: frozenset[int] = frozenset()
    """The columns that stand at the right."""
    empty: str = "There is nothing."
    """The sentence in place of a table without rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names with a value each."""

    kind: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One sentence that answers a question, or asks for attention."""

    kind: ClassVar[str] = "notice"
    text: str
    tone: Tone = Tone.PLAIN
    links: Sequence[Cell] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A part of a page whose service did not answer, or refused."""

    kind: ClassVar[str] = "missing"
    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of a chart."""

    label: str
    value: int
    text: str
    """The value with its unit."""
    href: str = ""
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Horizontal bars, drawn as SVG; the same values stand beside them as text."""

    kind: ClassVar[str] = "chart"
    caption: str
    bars: Sequence[Bar]

    @property
    def largest(self) -> int:
        """The value that fills the width."""
        return max((bar.value for bar in self.bars), default=0) or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One upright bar of a plot, of parts that stand on one another."""

    label: str
    parts: Sequence[tuple[int, Tone]]
    text: str
    """The values in words."""

    @property
    def height(self) -> int:
        """The sum of the parts."""
        return sum(value for value, _ in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Upright bars side by side, such as the hours of a day, drawn as SVG."""

    kind: ClassVar[str] = "columns"
    caption: str
    columns: Sequence[Column]

    @property
    def largest(self) -> int:
        """The value that fills the height."""
        return max((column.height for column in self.columns), default=0) or 1


Block = Columns | Grid | Facts | Notice | Missing | Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of a page, with its heading."""

    title: str
    blocks: Sequence[Block]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a form that changes the address of the page."""

    name: str
    label: str
    value: str = ""
    choices: Sequence[tuple[str, str]] = ()
    """Values with their labels; none: any text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Fields that say what the page shows; they end up in its address."""

    action: str
    fields: Sequence[Field]
    button: str = "Show"
    kept: Sequence[tuple[str, str]] = ()
    """Names and values that go along unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole page."""

    title: str
    command: str
    """The command line that tells the same; empty: there is none."""
    sections: Sequence[Section]
    notices: Sequence[Notice] = ()
    form: Form | None = None
    more: Cell | None = None
    """Where the list goes on."""
    trail: Sequence[Cell] = field(default_factory=tuple)
    """The pages above this one."""
    is_live: bool = True
    """Whether the page is asked for again while a person looks at it."""

    def lacking(self, missing: Sequence[Missing]) -> "Page":
        """Return the page with the parts of its list that are missing, named at the top."""
        if not missing:
            return self
        notice = Notice(
            text="The page shows, and counts, only the entries of the instances that answered.",
            tone=Tone.WARN,
        )
        top = Section(title="", blocks=(*missing, notice))
        return replace(self, sections=(top, *map(_undecided, self.sections)))


def _undecided(section: Section) -> Section:
    """Let no sentence of a section say that all is well: the missing entries are unknown."""
    return replace(
        section,
        blocks=[
            replace(block, tone=Tone.PLAIN)
            if isinstance(block, Notice) and block.tone is Tone.GOOD
            else block
            for block in section.blocks
        ],
    )
