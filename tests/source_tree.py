"""The project's own files, read and parsed once, for tests about the code itself."""

import ast
import builtins
import gc
import io
import subprocess
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Offence(NamedTuple):
    """A place where a rule is broken."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


class Comment(NamedTuple):
    """A comment of a module, with its hash sign."""

    line: int
    text: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Module:
    """A hand-written Python file. Many tests ask for the same parts of it: each is found once."""

    path: str
    """Relative to the root, with forward slashes."""
    text: str
    tree: ast.Module

    @property
    def is_test(self) -> bool:
        """Whether it is a test, or helps one."""
        return "tests" in Path(self.path).parts

    @property
    def is_source(self) -> bool:
        """Whether a member's wheel holds it."""
        return "src" in Path(self.path).parts

    @property
    def dotted_name(self) -> str:
        """Its name for import, if it is source."""
        name = self.path.partition("/src/")[2].removesuffix(".py").removesuffix("/__init__")
        return name.replace("/", ".")

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of its tree, as `ast.walk` yields them."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        """Its comments; text in strings is none."""
        if "#" not in self.text:
            return ()
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return tuple(
            Comment(token.start[0], token.string)
            for token in tokens
            if token.type == tokenize.COMMENT
        )

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """Its calls."""
        return tuple(node for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def names(self) -> tuple[tuple[str, ast.expr | ast.stmt], ...]:
        """The names that it imports or reads, in full as imported, each with its node."""
        aliases = imported_names(self.nodes)
        found: list[tuple[str, ast.expr | ast.stmt]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found += ((name, node) for name in imports(node).values())
            elif isinstance(node, ast.Attribute | ast.Name):
                first, dot, rest = ast.unparse(node).partition(".")
                name = aliases.get(first, first if hasattr(builtins, first) else f"local.{first}")
                found.append((name + dot + rest, node))
        return tuple(found)

    def uses(self, is_offence: Callable[[str], object]) -> Iterator[Offence]:
        """Yield where it imports or reads a name that, in full as imported, is an offence."""
        return (self.offence(node, name) for name, node in self.names if is_offence(name))

    def offence(self, node: ast.expr | ast.stmt | ast.alias, what: str) -> Offence:
        """Return an offence at a node."""
        return Offence(self.path, node.lineno, what)


def imported_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the full names of a module's imports, by the name that each has there."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= imports(node)
    return found


def imports(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return the full names of a statement's imports, by the name that each is given."""
    if isinstance(node, ast.ImportFrom):
        origin = "." * node.level + (node.module or "")
        return {name.asname or name.name: f"{origin}.{name.name}" for name in node.names}
    return {name.asname or name.name.partition(".")[0]: name.name for name in node.names}


@cache
def text_files() -> tuple[str, ...]:
    """Return the paths of all files that git keeps or would keep, except binary and lock files."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    paths = {path for path in listed.split("\0") if path and (ROOT / path).is_file()}
    return tuple(
        sorted(path for path in paths if not path.endswith((".binpb", ".lock", ".png", ".xz")))
    )


@cache
def modules() -> tuple[Module, ...]:
    """Return all hand-written Python files."""
    paths = [path for path in text_files() if path.endswith(".py") and "_pb2" not in path]
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}
    # The collector would look through all trees again and again, and finds nothing in them.
    gc.disable()
    try:
        return tuple(
            Module(path=path, text=text, tree=ast.parse(text, path)) for path, text in texts.items()
        )
    finally:
        gc.freeze()
        gc.enable()


@cache
def pyproject(folder: str = ".") -> dict[str, Any]:
    """Return the pyproject.toml of a folder."""
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def pure_modules() -> tuple[Module, ...]:
    """Return the modules that the import contract `pure` is about, and those within them."""
    patterns = [pattern.replace("**", "*") for pattern in contract("pure")]
    return tuple(
        module
        for module in modules()
        if module.is_source
        and any(
            fnmatchcase(module.dotted_name, pattern)
            or fnmatchcase(module.dotted_name, f"{pattern}.*")
            for pattern in patterns
        )
    )


def contract(contract_id: str) -> list[str]:
    """Return the source modules of an import contract."""
    contracts = pyproject()["tool"]["importlinter"]["contracts"]
    (found,) = (each["source_modules"] for each in contracts if each["id"] == contract_id)
    return list(found)
