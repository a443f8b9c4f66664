"""Which test shows which scenario of Kafka's own tests; ``python -m scenarios`` draws the page."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator

from source_tree import ROOT, modules

PAGE = ROOT / "docs" / "internals" / "scenarios.md"
_TABLE = ROOT / "tests" / "scenarios.toml"
_DOES_NOT_APPLY = "does-not-apply"
_NUMBER = re.compile(r"(?:\bC-|_c)(\d{3})(?!\d)")
_INTRODUCTION = """\
<!-- Generated from tests/scenarios.toml and the tests; `make docs` writes it again. -->

# Scenarios

Apache Kafka's own tests check these scenarios of transactions. The page lists them by number, with
the tests that show the same of Semel. A test names its scenarios in its name or its text. If the
protocol differs from Kafka's (epochs of 64 bits, one for each transaction; inquiry instead of
verification; aborted records filtered by the broker), a scenario is adapted, or does not apply.
"""


def chapters() -> dict[str, dict[str, str]]:
    """Return what each scenario says by number, by chapter."""
    return {name: each for name, each in _table().items() if name != _DOES_NOT_APPLY}


def reasons() -> dict[str, str]:
    """Return why a scenario does not apply, by number."""
    return _table()[_DOES_NOT_APPLY]


def shown() -> dict[str, list[str]]:
    """Return the tests that name a scenario, as ``path::name``, by number."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules():
        if not _NUMBER.search(module.text):
            continue
        lines = module.text.split("\n")
        for test in _tests(module.tree):
            text = "\n".join(lines[test.lineno - 1 : test.end_lineno])
            for number in dict.fromkeys(_NUMBER.findall(text)):
                found[f"C-{number}"].append(f"{module.path}::{test.name}")
    return dict(found)


def page() -> str:
    """Return the page of all scenarios."""
    return "\n".join((_INTRODUCTION.rstrip(), *_lines())) + "\n"


def _lines() -> Iterator[str]:
    tests, exempt = shown(), reasons()
    for chapter, scenarios in chapters().items():
        yield ""
        yield f"## {chapter.replace('-', ' ').capitalize()}"
        yield ""
        yield "| number | says | shown by |"
        yield "|---|---|---|"
        for number, says in scenarios.items():
            links = [_link(test) for test in tests.get(number, ())]
            why = [f"*Does not apply: {exempt[number]}*"] if number in exempt else []
            yield f"| {number} | {says} | {'<br>'.join(why + links)} |"


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../../{path})"


def _tests(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_test(node.name):
            yield node


def _is_test(name: str) -> bool:
    return name.startswith("test_")


def _table() -> dict[str, dict[str, str]]:
    with _TABLE.open("rb") as file:
        return tomllib.load(file)


if __name__ == "__main__":
    PAGE.write_text(page())
