"""The README's five minutes, as a new user spends them: every command and every program in it.

So are the commands of docs/clients.md.
"""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from documented.pages import text_of
from documented.shell import Shell

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

README = text_of("README.md")
CLIENTS = text_of("docs/clients.md")
_TOUR = README[README.index("## Five minutes") : README.index("## On Spark")]
_STEPS = re.compile(r"```(console|python)\n(.*?)```|`(\.venv/bin/[^`]*)`", re.DOTALL)


class Step(NamedTuple):
    """One thing to do."""

    kind: str
    """console or python."""
    text: str
    shown: str = ""
    """What the README says that it writes; empty: nothing is said."""


def steps(page: str) -> Iterator[Step]:
    """Yield what a page has a user do, in its order."""
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
    *others, shouting, create, describe, consume = others
    assert [shouting.kind, create.kind, describe.kind] == ["python", "console", "console"]
    with shell.up(first.text):
        for step in others:
            if step.kind == "python":
                assert shell.program(step.text).wait(timeout=30) == 0
                continue
            written = shell.run(step.text)
            assert not step.shown or written == step.shown, step.text
        shell.run(create.text)
        with shell.program(shouting.text) as shouts:
            try:
                greetings = 3 + README.count("\n")
                everything = re.sub(r"--max-messages \d+", f"-n {greetings}", consume.text)
                shouted = shell.run(everything).splitlines()
                shell.run(describe.text)
                assert len(shell.run(consume.text).splitlines()) == 2
            finally:
                shouts.send_signal(signal.SIGINT)
        assert {"HELLO", "SALVE", "AVE", "# SEMEL"} <= set(shouted)
        assert shell.run(".venv/bin/semel consume audit --from-beginning -n 1") == (
            "somebody was greeted\n"
        )


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
    """Return JSON without what differs from one cluster to the next: ids, ports and times."""
    if not text.strip():
        return None
    return blurred(json.loads(text))


def blurred(value: object) -> object:
    """Return a value with the names of all fields, and the texts that say what something is."""
    match value:
        case dict():
            return {key: blurred(each) for key, each in value.items()}
        case list():
            return [blurred(each) for each in value]
        case str() if re.fullmatch(r"[A-Z]+(_[A-Z0-9]+)+", value):
            return value
        case _:
            return type(value).__name__
