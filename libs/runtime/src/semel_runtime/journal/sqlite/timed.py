"""How long SQLite itself takes for a statement, measured in the thread that runs it.

It goes with the statement's parameters: by the time the event loop is told of its end, the thread
may have run others.
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = int | str | bytes | None


@dataclass(slots=True)
class TimedParameters:
    """Those of a statement that is timed."""

    values: Sequence[Value]
    seconds: float = 0.0
    """How long it took, once it has run."""

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the values: parameters are iterable."""
        return iter(self.values)


class TimedConnection(sqlite3.Connection):
    """Times the statements whose parameters want it; made to be passed as ``factory``."""

    def execute(  # type: ignore[override]  # narrower: nobody names them
        self, statement: str, parameters: Sequence[Value] | TimedParameters = (), /
    ) -> sqlite3.Cursor:
        """Run one statement. What has no rows is durable when this returns: it commits itself."""
        if not isinstance(parameters, TimedParameters):
            return super().execute(statement, parameters)
        started = time.perf_counter()
        cursor = super().execute(statement, parameters.values)
        parameters.seconds = time.perf_counter() - started
        return cursor
