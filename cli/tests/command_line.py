"""Runs commands in this process, as a shell would."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from semel_cli.main import app

COMMAND = get_command(app)
"""Made once: Typer's own runner makes all commands of `app` again for each call."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - it may be anything
        """Its output, if it was asked for JSON."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Call it with arguments."""

    environment: Mapping[str, str]

    def __call__(self, *arguments: str, stdin: str | bytes = "", status: int = 0) -> Ran:
        """Run a command; its exit status must be as expected."""
        runner = CliRunner()
        ended: object = None
        with runner.isolation(input=stdin, env=self.environment) as (out, err, _):
            try:
                COMMAND.main(arguments, prog_name=runner.get_default_prog_name(COMMAND))
            except SystemExit as end:
                ended = end.code
            sys.stdout.flush()
            sys.stderr.flush()
            texts = [stream.getvalue().decode(errors="replace") for stream in (out, err)]
        assert ended is None or isinstance(ended, int), ended
        ran = Ran(ended or 0, *(text.replace("\r\n", "\n") for text in texts))
        assert ran.status == status, ran
        return ran
