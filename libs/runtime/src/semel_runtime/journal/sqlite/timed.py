"""How long SQLite itself takes for a statement, measured in the thread that runs it.

It goes with the statement's parameters: by the time the event loop is told of its end, the thread
may have run others.
"""

import sqlite3
import time
from collections.abc import Sequence
from typing import TypeAlias

Value: TypeAlias = int | str | bytes | None


class Parameters(list[Value]):
    """Of a statement that is timed. A list, for that is what SQLite binds."""

    seconds = 0.0
    """How long it took, once it has run."""


class TimedConnection(sqlite3.Connection):
    """Times the statements whose ``Parameters`` want it; the module's own way to add to a call."""

    def execute(self, statement: str, parameters: Sequence[Value] = (), /) -> sqlite3.Cursor:  # type: ignore[override]  # narrower: nobody names them
        """Run one statement. What has no rows is durable when this returns: it commits itself."""
        started = time.perf_counter()
        cursor = super().execute(statement, parameters)
        if isinstance(parameters, Parameters):
            parameters.seconds = time.perf_counter() - started
        return cursor
