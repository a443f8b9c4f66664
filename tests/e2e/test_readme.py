"""The README's five minutes, as a new user spends them: every command and every program in it."""

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
ADDRESS = "127.0.0.1:9092"
_TOUR = README[README.index("## Five minutes") : README.index("## On Spark")]
_STEPS = re.compile(r"```(console|python)\n(.*?)```|`(\.venv/bin/[^`]*)`", re.DOTALL)


class Step(NamedTuple):
    """One thing to do."""

    kind: str
    """console or python."""
    text: str
    shown: str = ""
    """What the README says that it writes; empty: nothing is said."""


def steps() -> Iterator[Step]:
    """Yield what the tour has a user do, in its order."""
    for block, text, inline in _STEPS.findall(_TOUR):
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
        self.address = ""
        self.environment = {
            **{name: value for name, value in os.environ.items() if "SEMEL" not in name},
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_DATA_HOME": str(home / "data"),
        }

    def run(self, command: str) -> str:
        """Run a command to its end; returns what it wrote."""
        done = subprocess.run(
            ["/bin/sh", "-c", command.replace(".venv/bin", str(BIN))],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def program(self, text: str) -> "subprocess.Popen[bytes]":
        """Start a program in Python, with the address of this test's cluster in it."""
        assert ADDRESS in text
        program = text.replace(ADDRESS, self.address)
        return subprocess.Popen([sys.executable, "-c", program], env=self.environment)

    @contextmanager
    def up(self, command: str) -> Iterator[None]:
        """Leave the first command running, at a port that is free."""
        words = command.replace(".venv/bin", str(BIN)).split()
        with subprocess.Popen(
            [*words, "--port", "0"], env=self.environment, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            while not self.address:
                name, _, value = process.stdout.readline().partition("\t")
                self.address = value.strip() if name == "Bootstrap" else ""
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=30)


def test_the_tour_can_be_taken(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    first, *others = steps()
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
