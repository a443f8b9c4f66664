"""Finds the commands on the pages: lines of `console` and `sh` blocks, and inline code.

In `console` a command begins with `$ `, and the rest is its output; each line of `sh` is a command.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED_FROM_HELP = ROOT / "docs" / "reference" / "commands.md"
DECISIONS = ROOT / "docs" / "internals" / "adr"
PAGES = (
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md"),
    *sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "docs").rglob("*.md")
        if path != GENERATED_FROM_HELP and DECISIONS not in path.parents
    ),
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`([^`]+)`")
_KEYWORDS = {"do", "done", "then", "fi", "set"}
_ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line that a reader may type."""

    page: str
    number: int
    text: str
    whole: bool
    """It stands in a block, to be typed as it is; else it may only name a command."""

    def __str__(self) -> str:
        return f"{self.page}:{self.number}: {self.text}"

    def saying(self, old: str, new: str) -> "Line":
        """Return it with a mistake."""
        assert old in self.text
        return replace(self, text=self.text.replace(old, new))


@cache
def text_of(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text("utf-8")


def blocks(page: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of the first line, the language and the text of each block."""
    text = text_of(page)
    for found in _FENCE.finditer(text):
        yield text.count("\n", 0, found.start()) + 2, found[1], found[2]


def inline(page: str) -> Iterator[tuple[int, str]]:
    """Yield the number of the line and the text of all code that is not in blocks."""
    text = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text_of(page))
    for found in _INLINE.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, " ".join(found[1].split())


def lines(page: str) -> Iterator[Line]:
    """Yield the commands in the blocks of a page."""
    for first, language, text in blocks(page):
        if language not in ("console", "sh"):
            continue
        joined = re.sub(r"\s*\\\n\s*", " ", text)
        for number, line in enumerate(joined.splitlines(), first):
            command = line.removeprefix("$ ")
            if command.strip() and command[0] != "#" and (language == "sh" or command != line):
                yield Line(page=page, number=number, text=command, whole=True)


def mentions(page: str, programs: Sequence[str]) -> Iterator[Line]:
    """Yield the commands in inline code: each begins with one of these programs."""
    for number, text in inline(page):
        first, _, rest = text.removeprefix(".venv/bin/").partition(" ")
        if first in programs and rest:
            yield Line(page=page, number=number, text=text, whole=False)


def simple_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command in a line of a shell, without redirections."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    skip = False
    for word in [*lexer, ";"]:
        if skip or (word and set(word) <= set("<>")):
            skip = not skip
        elif set(word) <= set(";|&") and word:
            if words and words[0] != "for":
                yield words
            words = []
        elif words or not (word in _KEYWORDS or _ASSIGNMENT.fullmatch(word)):
            words.append(word)
