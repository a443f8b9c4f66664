"""Statements with more to them than values: timed ones, and ones that are not synced.

What there is to tell goes with a statement's parameters: by the time the event loop is told of its
end, the thread that runs it may have run others.
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from semel_runtime.journal.sqlite.journal_end import WitnessedLog

Value: TypeAlias = int | str | bytes | None

# Unlike numbers and text, bytes are adapted: sqlite3 looks for a way in three places, finds none,
# and takes them as they are. Told of one that returns what it gets, it looks in the first only.
sqlite3.register_adapter(bytes, bytes)

DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError)
"""What the driver raises for a damaged file: for bytes that are named text, and for a length that
no memory has, it has no error of the engine's."""

_UNSYNCED = "PRAGMA synchronous = NORMAL"
_SYNCED = "PRAGMA synchronous = FULL"


@dataclass(slots=True)
class TimedParameters:
    """Those of an append, which is timed."""

    values: Sequence[Value]
    next_offset: int
    """Where the journal ends once it has run."""
    seconds: float = 0.0
    """How long SQLite itself took, once it has run."""

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the values: parameters are iterable."""
        return iter(self.values)


@dataclass(slots=True)
class UnsyncedParameters:
    """Those of a statement without rows that need not outlast a loss of power by itself.

    It is in the log, in its place: the next statement that is synced makes it durable as well.
    """

    values: Sequence[Value]
    changed: int = 0
    """How many rows it inserted, updated or deleted, once it has run."""

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the values: parameters are iterable."""
        return iter(self.values)


class WriterConnection(sqlite3.Connection):
    """Runs such statements; made to be passed as ``factory``. All others are synced.

    The log's witness is told of each before its caller is.
    """

    log: WitnessedLog

    def execute(  # type: ignore[override]  # narrower: callers pass them by position
        self,
        statement: str,
        parameters: Sequence[Value] | TimedParameters | UnsyncedParameters = (),
        /,
    ) -> sqlite3.Cursor:
        """Run one statement. A statement without rows has committed when this returns."""
        match parameters:
            case TimedParameters():
                return self._timed(statement, parameters)
            case UnsyncedParameters():
                return self._unsynced(statement, parameters)
            case _:
                cursor = super().execute(statement, parameters)
                if not statement.startswith("SELECT"):
                    self.log.committed()
                return cursor

    def executescript(self, script: str, /) -> sqlite3.Cursor:
        """Run a script, of which nothing is synced."""
        cursor = super().executescript(script)
        self.log.committed_unsynced()
        return cursor

    def _timed(self, statement: str, parameters: TimedParameters) -> sqlite3.Cursor:
        started = time.perf_counter()
        cursor = super().execute(statement, parameters.values)
        parameters.seconds = time.perf_counter() - started
        self.log.committed(parameters.next_offset)
        return cursor

    def _unsynced(self, statement: str, parameters: UnsyncedParameters) -> sqlite3.Cursor:
        super().execute(_UNSYNCED)
        try:
            cursor = super().execute(statement, parameters.values)
        finally:
            super().execute(_SYNCED)
        parameters.changed = cursor.rowcount
        self.log.committed_unsynced()
        return cursor


def unsynced_script(statement: str) -> str:
    """Return a script of one statement that is not synced."""
    return f"{_UNSYNCED}; {statement}; {_SYNCED}"
