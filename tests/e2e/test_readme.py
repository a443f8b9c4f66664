"""The first steps of a new user: every command and every program of docs/start/first-steps.md.

The test follows docs/use/clients.md in the same way.
"""

import json
import re
import signal
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from documented.pages import text_of
from documented.shell import Shell

from semel_runtime.testing.default_signals import default_signals

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

README = text_of("README.md")
CLIENTS = text_of("docs/use/clients.md")
_TOUR = text_of("docs/start/first-steps.md")
_STEPS = re.compile(r"```(console|python)\n(.*?)```|`(\.venv/bin/[^`]*)`", re.DOTALL)


class Step(NamedTuple):
    """One thing to do."""

    kind: str
    """console or python."""
    text: str
    shown: str = ""
    """The output that the page shows; empty: the page shows none."""


def steps(page: str) -> Iterator[Step]:
    """Yield the steps of a page, in its order."""
    for block, text, inline in _STEPS.findall(page):
        if inline:
            yield Step("console", inline)
        elif block == "python":
            yield Step("python", text)
        else:
            for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, shown = command.partition("\n")
                yield Step("console", line, shown)


def test_the_tour_can_be_taken(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    first, *others = steps(_TOUR)
    assert first.text == ".venv/bin/semel up"
    *others, shouting, create, shout, describe, consume = others
    kinds = [each.kind for each in (shouting, create, shout, describe)]
    assert kinds == ["python", "console", "console", "console"]
    with default_signals(), shell.up(first.text):
        program = ""
        for step in others:
            if step.kind == "python":
                program = step.text
                continue
            if step.text.startswith(".venv/bin/python "):
                assert ended(shell.program(step.text, program)) == (0, "")
                continue
            written = shell.run(step.text)
            assert not step.shown or written == step.shown, step.text
        shell.run(create.text)
        with shell.program(shout.text, shouting.text) as shouts:
            try:
                greetings = 3 + README.count("\n")
                everything = re.sub(r"--max-messages \d+", f"-n {greetings}", consume.text)
                shouted = shell.run(everything).splitlines()
                shell.run(describe.text)
                assert len(shell.run(consume.text).splitlines()) == 2
            finally:
                shouts.send_signal(signal.SIGINT)
                assert ended(shouts) == (0, ""), "Ctrl-C does not end the loop in order"
        assert {"HELLO", "SALVE", "AVE", "# SEMEL"} <= set(shouted)
        assert shell.run(".venv/bin/semel consume audit --from-beginning -n 1") == (
            "a greeting was sent\n"
        )


def test_the_programs_of_the_readme_are_parts_of_the_first_steps() -> None:
    tour = "".join(textwrap.dedent(step.text) for step in steps(_TOUR) if step.kind == "python")
    known = {line.strip() for line in tour.splitlines()}
    programs = [step.text for step in steps(README) if step.kind == "python"]
    assert len(programs) == 2
    assert [
        line for text in programs for line in text.splitlines() if line.strip() not in known
    ] == []


def ended(program: "subprocess.Popen[str]") -> tuple[int, str]:
    """Wait for the end of a program; returns its status and its standard error."""
    _, complaints = program.communicate(timeout=30)
    return program.returncode, complaints


def test_the_page_for_clients_can_be_followed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    first, *others = steps(CLIENTS)
    assert first.text == ".venv/bin/semel up"
    assert len(others) > 4
    with shell.up(first.text):
        for step in others:
            done = shell.attempt(step.text)
            if '"code"' in step.shown:  # An error, which the page shows.
                assert done.returncode != 0, step.text
                assert without_places(done.stderr) == without_places(step.shown), step.text
            else:
                assert done.returncode == 0, (step.text, done.stderr)
                assert shape(done.stdout) == shape(step.shown), step.text


def without_places(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


def shape(text: str) -> object:
    """Return JSON without the values that differ between clusters: ids, ports and times."""
    if not text.strip():
        return None
    return blurred(json.loads(text))


def blurred(value: object) -> object:
    """Return a value with the names of all fields, and the texts that describe a resource."""
    match value:
        case dict():
            return {key: blurred(each) for key, each in value.items()}
        case list():
            return [blurred(each) for each in value]
        case str() if re.fullmatch(r"[A-Z]+(_[A-Z0-9]+)+", value):
            return value
        case _:
            return type(value).__name__
