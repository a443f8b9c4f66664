"""Looks up whether the commands of a page exist, without running them.

Commands and options of `semel`, targets and variables of make, modules, files, options of kubectl.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from documented.pages import ROOT, Line, blocks, simple_commands, text_of
from semel_cli.main import app

BIN = Path(sys.executable).parent
_COMMAND = typer.main.get_command(app)
_MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
_SOURCES = (ROOT, ROOT / "tests", *ROOT.glob("*/src"), *ROOT.glob("*/*/src"))
_PLACEHOLDER = re.compile(r"[A-Z]+|\$\w+")
_KUBECTL = shutil.which("kubectl")
_VERBS = {"create": 3, "rollout": 2}
"""How many words a command of kubectl has, if it is not one."""

ELSEWHERE = {
    "buf": "tests/e2e/test_readme.py, make test-clients",
    "go": "make test-clients",
    "npm": "make test-clients",
    "node": "make test-clients",
    "mvn": "make test-clients",
    "java": "make test-clients",
    "kafka-consumer-groups.sh": "make from-kafka",
    "pip": "tests/test_dist.py",
    "printf": "tests/e2e/test_readme.py, cli/tests/test_compacted_topics.py",
}
"""Programs of others, and who runs the lines that have them."""


def wrong(line: Line) -> list[str]:
    """Return the errors in a line; none if all of its names exist."""
    found: list[str] = []
    folder = ROOT
    for program, *words in simple_commands(line.text):
        name = program.removeprefix(".venv/bin/")
        if name != program and not (BIN / name).exists():
            found.append(f"{program} is not there")
        if name == "cd":
            folder = ROOT / words[0]
        elif name in _RULES:
            found += _RULES[name](words, line, folder)
        elif name not in ELSEWHERE:
            found.append(f"nothing knows how to look up {program}")
    return [f"{line}: {each}" for each in found]


def _semel(words: Sequence[str], line: Line, folder: Path) -> Iterator[str]:
    del folder
    rest = [_PLACEHOLDER.sub("1", word) if _PLACEHOLDER.fullmatch(word) else word for word in words]
    unsaid = rest[-1:] == ["…"] and not rest[-2].startswith("--")
    rest = rest[:-1] if unsaid else rest
    command, context = _COMMAND, None
    try:
        while isinstance(command, TyperGroup):
            if not rest:
                return  # A group of commands is named.
            context = command.make_context("semel", rest, parent=context)
            left = [*context._protected_args, *context.args]
            _, found, rest = command.resolve_command(context, left)
            assert found is not None
            command = found
        given = command.make_context("semel", rest, parent=context).params
        if line.whole and given.get("yes") is False and not given.get("dry_run"):
            yield "it asks a question, at which a reader who pastes it stops: give --yes"
    except TyperException as error:
        if (line.whole and not unsaid) or type(error).__name__ != "MissingParameter":
            yield error.format_message() if hasattr(error, "format_message") else str(error)


def _make(words: Sequence[str], line: Line, folder: Path) -> Iterator[str]:
    del line, folder
    for word in words:
        variable, equals, _ = word.partition("=")
        if equals:
            if not re.search(rf"\$\({variable}\)|^{variable} *\?=", _MAKEFILE, re.MULTILINE):
                yield f"the Makefile has no variable {variable}"
        elif not re.search(rf"^{re.escape(word)}:", _MAKEFILE, re.MULTILINE):
            yield f"the Makefile has no target {word}"


def _python(words: Sequence[str], line: Line, folder: Path) -> Iterator[str]:
    if words[0].endswith(".py"):
        if not (folder / words[0]).exists() and f"`{words[0]}`" not in text_of(line.page):
            yield f"{words[0]} is not there, and the page does not say to save it"
        return
    if words[0] != "-m":
        yield f"not a module: {words[0]}"
        return
    if words[1] in sys.stdlib_module_names:
        return
    path = words[1].replace(".", "/")
    for source in (folder, *_SOURCES):
        if (source / path / "__main__.py").exists() or (source / f"{path}.py").exists():
            package = source / path.partition("/")[0]
            texts = "".join(each.read_text("utf-8") for each in package.rglob("*.py"))
            yield from _unknown_to(texts, words[2:], words[1])
            return
    yield f"no module {words[1]}"


def _unknown_to(source: str, words: Sequence[str], module: str) -> Iterator[str]:
    """Yield options and names that a program does not have as texts."""
    for before, word in zip(["", *words], words, strict=False):
        value = before.startswith("--") or not re.fullmatch(r"(--)?[a-z][a-z-]*", word)
        if not value and f'"{word}"' not in source:
            yield f"{module} does not know {word}"


@cache
def _help_of_kubectl(*verbs: str) -> str:
    assert _KUBECTL is not None
    asked = ([_KUBECTL, *verbs, "--help"], [_KUBECTL, "options"])
    return "".join(subprocess.check_output(question, text=True) for question in asked)


@cache
def _manifests() -> str:
    return "".join(path.read_text("utf-8") for path in (ROOT / "k8s").rglob("*.yaml"))


def _kubectl(words: Sequence[str], line: Line, folder: Path) -> Iterator[str]:
    words = [re.sub(r"\$\w+", "*", word) for word in words]
    for option, value in pairwise(words):
        if option in ("-k", "-f", "--filename"):
            made = any(f"# {value}/" in text for _, _, text in blocks(line.page))
            if not made and not list(folder.glob(value)):
                yield f"{value} is not there"
    for kind, name in re.findall(r"(?<= )(\w+)/([a-z-]+)(?= |$)", " ".join(words)):
        if not re.search(rf"\bname: {name}\b", _manifests()):
            yield f"no manifest has {kind}/{name}"
    verbs = [word for word in words if re.fullmatch("[a-z][a-z-]+", word) and word != "semel"]
    verbs = verbs[: _VERBS.get(verbs[0], 1)]
    for option in re.findall(r"(?<= )--[a-z-]+", " ".join(words)):
        if _KUBECTL and f"{option}=" not in _help_of_kubectl(*verbs):
            yield f"kubectl {' '.join(verbs)} has no option {option}"


def _docker(words: Sequence[str], line: Line, folder: Path) -> Iterator[str]:
    del line
    options = dict(pairwise(words))
    file = folder / options.get("--file", "Dockerfile")
    if not file.exists():
        yield f"{file} is not there"
        return
    for option, value in pairwise(words):
        argument = value.partition("=")[0]
        if option == "--build-arg" and f"ARG {argument}" not in file.read_text("utf-8"):
            yield f"{file.name} has no argument {argument}"


def _spark_submit(words: Sequence[str], line: Line, folder: Path) -> Iterator[str]:
    for word in words:
        _, _, path = word.rpartition("=")
        if path.startswith("k8s/") and not (folder / path).exists():
            yield f"{path} is not there"
    program = next((at for at, word in enumerate(words) if word.endswith(".py")), None)
    if program is not None:
        module = words[program].rpartition("/site-packages/")[2]
        name = module.removesuffix("/__main__.py").replace("/", ".")
        yield from _python(["-m", name, *words[program + 1 :]], line, folder)


_RULES: dict[str, Callable[[Sequence[str], Line, Path], Iterator[str]]] = {
    "semel": _semel,
    "make": _make,
    "python": _python,
    "kubectl": _kubectl,
    "docker": _docker,
    "spark-submit": _spark_submit,
}
PROGRAMS = tuple(_RULES)
