"""The terminals of a user who follows a page, beside a cluster that `semel up` has started."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from documented.pages import ROOT

BIN = Path(sys.executable).parent
ADDRESS = "127.0.0.1:9092"
PLACES = {
    "coordinator-0": ADDRESS,
    "broker-0": "127.0.0.1:9093",
    "group-coordinator-0": "127.0.0.1:9094",
}
"""Where `semel up` puts services of one each, which the pages say."""


class Shell:
    """The terminals of one user."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.addresses: dict[str, str] = {}
        self.environment = {
            **{name: value for name, value in os.environ.items() if "SEMEL" not in name},
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_DATA_HOME": str(home / "data"),
        }

    def run(self, command: str) -> str:
        """Run a command to its end; returns its output."""
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

    def program(self, command: str, text: str) -> "subprocess.Popen[str]":
        """Save a program in Python, with the address of this test's cluster, and start it."""
        python, name = command.split()
        assert python == ".venv/bin/python"
        assert ADDRESS in text
        (self.home / name).write_text(self.placed(text), "utf-8")
        return subprocess.Popen(
            [BIN / "python", name],
            cwd=self.home, env=self.environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    @contextmanager
    def up(self, command: str) -> Iterator[None]:
        """Leave the first command running, at a port that is free."""
        program, *words = command.removeprefix(".venv/bin/").split()
        with subprocess.Popen(
            [BIN / program, *words, "--port", "0"],
            env=self.environment, stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
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
