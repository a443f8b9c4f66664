"""The README's five minutes, as a new user spends them: every command and every program in it.

So are the commands of docs/clients.md.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
CLIENTS = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
ADDRESS = "127.0.0.1:9092"
PLACES = {
    "coordinator-0": ADDRESS,
    "broker-0": "127.0.0.1:9093",
    "group-coordinator-0": "127.0.0.1:9094",
}
"""Where `semel up` puts services of one each, which the pages say."""
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


class Shell:
    """The terminals of one user."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.addresses: dict[str, str] = {}
        self.environment = {
            **{name: value for name, value in os.environ.items() if "SEMEL" not in name},
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_DATA_HOME": str(home / "data"),
        }

    def run(self, command: str) -> str:
        """Run a command to its end; returns what it wrote."""
        done = self.attempt(command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def attempt(self, command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end, whatever that is."""
        return subprocess.run(
            ["/bin/sh", "-c", self.placed(command.replace(".venv/bin", str(BIN)))],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def placed(self, text: str) -> str:
        """Return a text with the addresses of this test's cluster in it."""
        for name, address in PLACES.items():
            text = text.replace(address, self.addresses[name])
        return text

    def program(self, text: str) -> "subprocess.Popen[bytes]":
        """Start a program in Python, with the address of this test's cluster in it."""
        assert ADDRESS in text
        return subprocess.Popen([sys.executable, "-c", self.placed(text)], env=self.environment)

    @contextmanager
    def up(self, command: str) -> Iterator[None]:
        """Leave the first command running, at a port that is free."""
        words = command.replace(".venv/bin", str(BIN)).split()
        with subprocess.Popen(
            [*words, "--port", "0"], env=self.environment, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            while self.addresses.keys() < PLACES.keys():
                name, *values = process.stdout.readline().split("\t")
                if name in PLACES:
                    self.addresses[name] = values[0].strip()
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=30)


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
