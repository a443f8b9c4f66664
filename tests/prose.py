"""Clauses without a noun in the project's prose: docstrings, comments and pages.

Each clause of good prose names its subject: a record, a caller, a broker. The patterns here find
pronouns and relative clauses in the place of that noun, and old-fashioned phrases. Text in code
blocks, in inline code and in string literals does not count.
"""

import ast
import re
from collections.abc import Iterator

from source_tree import ROOT, Module, modules, text_files

PRONOUNS = r"whoever|whomever|nobody|somebody|those\s+(?:who|which|that)"
"""Pronouns that stand for a reader, a caller or a service."""

SUBJECTS = (
    r"who\s+(?:asks|calls|can|does|gets|has|holds|is|knows|may|reads|sends|takes|waits|was|writes)"
    r"(?![?])"
    r"|(?:by|for|of|to)\s+who\b"
)
"""Relative clauses in the place of a person or a process."""

OBJECTS = (
    r"(?:as|and|but|by|for|from|in|of|on|so|than|that|to|with)\s+what\s+"
    r"(?:a|are|had|has|he|is|it|nobody|of|she|somebody|the|they|was|were)"
    r"|what\s+(?:had|has|is|was)\s+"
    r"(?:decided|in|kept|known|left|no|not|of|on|open|read|sent|stored|there|to|written)"
    r"|whatever\s+(?:has|is|was)"
)
"""Relative clauses in the place of a thing."""

PHRASES = (
    r"all\s+the\s+same|anew|but\s+for|in\s+vain|is\s+none\s+to|mend(?:ed|ing|s)?"
    r"|so\s+does\s+one\s+of"
)
"""Phrases of an older English."""

NOUNLESS = re.compile(rf"\b(?:{PRONOUNS}|{SUBJECTS}|{OBJECTS}|{PHRASES})\b", re.IGNORECASE)


def nounless() -> Iterator[str]:
    """Yield each clause without a noun, with its file and its surroundings."""
    for module in modules():
        yield from _found(module.path, prose(module))
    for path in text_files():
        if path.endswith(".md"):
            yield from _found(path, page((ROOT / path).read_text("utf-8")))


def _found(path: str, text: str) -> Iterator[str]:
    for clause in NOUNLESS.finditer(text):
        around = text[max(0, clause.start() - 60) : clause.end() + 40]
        yield f"{path}: …{' '.join(around.split())}…"


def clauses(text: str) -> int:
    """Return how many clauses of a text have no noun."""
    return len(NOUNLESS.findall(text))


def prose(module: Module) -> str:
    """Return the docstrings of a module, also of its constants, and its comments."""
    docstrings = [
        node.value.value
        for node in module.nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    comments = [comment.text for comment in module.comments]
    return re.sub(r"``[^`]*``", "code", "\n".join((*docstrings, *comments)))


def page(markdown: str) -> str:
    """Return a page without its code."""
    text = re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", "code", text)
