"""Runs commands in this process, as a shell would."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from semel_cli.main import app


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
        result = CliRunner().invoke(app, arguments, input=stdin, env=dict(self.environment))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        ran = Ran(result.exit_code, result.stdout, result.stderr)
        assert ran.status == status, ran
        return ran
