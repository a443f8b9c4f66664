"""The page of all pure modules, each with its rule; ``python -m pure_modules_page`` draws it."""

import ast
from collections.abc import Iterator
from itertools import groupby

from source_tree import ROOT, Module, pure_modules

PAGE = ROOT / "docs" / "internals" / "pure-modules.md"
_INTRODUCTION = """\
<!-- Generated from the modules' docstrings; `make docs` writes it again. -->

# Pure modules

These modules decide. They do no I/O, and read no clock: the import contract `pure` of
`pyproject.toml` holds them to that. [ARCHITECTURE.md](../../ARCHITECTURE.md) says which rules of
the protocol they have, and which modules ask for them.
"""


def page() -> str:
    """Return the page."""
    return "\n".join((_INTRODUCTION.rstrip(), *_lines())) + "\n"


def _lines() -> Iterator[str]:
    modules = sorted(filter(_says_something, pure_modules()), key=_place)
    for package, members in groupby(modules, key=_package):
        yield from ("", f"## `{package}`", "", "| module | in one sentence |", "|---|---|")
        for module in members:
            name = module.dotted_name.removeprefix(f"{package}.")
            yield f"| [`{name}`](../../{module.path}) | {_sentence(module)} |"


def _says_something(module: Module) -> bool:
    return not module.path.endswith("/__init__.py")


def _place(module: Module) -> tuple[str, str]:
    return _package(module), module.dotted_name


def _package(module: Module) -> str:
    return module.dotted_name.rpartition(".")[0]


def _sentence(module: Module) -> str:
    """Return the first paragraph of the docstring, which is one sentence."""
    text = ast.get_docstring(module.tree) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
