"""Statements with more to them than values: timed ones, and ones that are not synced.

What there is to tell goes with a statement's parameters: by the time the event loop is told of its
end, the thread that runs it may have run others.
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import TypeAlias

from semel_runtime.journal.contract import StoredBatch
from semel_runtime.journal.log.frames import LoggedAppend
from semel_runtime.journal.sqlite.journal_end import WitnessedLog
from semel_runtime.journal.sqlite.payloads.payload_files import Place
from semel_runtime.journal.sqlite.schema import FENCED

Value: TypeAlias = int | str | bytes | None

# Unlike numbers and text, bytes are adapted: sqlite3 looks for a way in three places, finds none,
# and takes them as they are. Told of one that returns what it gets, it looks in the first only.
sqlite3.register_adapter(bytes, bytes)

DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError)
"""What the driver raises for a damaged file: for bytes that are named text, and for a length that
no memory has, it has no error of the engine's."""

_POSITION = """
SELECT epoch, coalesce((SELECT value FROM meta WHERE key = 'log'), ''), next_offset FROM positions
"""
_INSERT_CHUNK = "INSERT INTO chunks VALUES (?, ?, ?, ?)"
_INSERT_BATCH = "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SET_LOG = """
INSERT INTO meta VALUES ('log', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""

_IN_ROWS: Iterable[Place | None] = repeat(None)

_UNSYNCED = "PRAGMA synchronous = NORMAL"
_SYNCED = "PRAGMA synchronous = FULL"


@dataclass(slots=True)
class AppendsParameters:
    """Those of consecutive appends, which go into the tables in one transaction, and are timed."""

    epoch: int
    """Of the claim that has to be the owner's."""
    log: str
    """What the file has to say of the log in front of it."""
    appends: Sequence[LoggedAppend]
    places: Sequence[Place] = ()
    """Of the payloads of all batches in files, in order; without any, payloads go into the rows."""
    seconds: float = 0.0
    """How long SQLite itself took, once it has run."""

    def __iter__(self) -> Iterator[Value]:
        """Iterate over nothing: parameters are iterable."""
        return iter(())


@dataclass(slots=True)
class LogParameters:
    """Those of the change to another log, or to none."""

    epoch: int
    """Of the claim that has to be the owner's."""
    before: str
    """What the file has to say of the log in front of it."""
    after: str
    """What it says then."""

    def __iter__(self) -> Iterator[Value]:
        """Iterate over nothing: parameters are iterable."""
        return iter(())


@dataclass(slots=True)
class UnsyncedParameters:
    """Those of a change that need not outlast a loss of power by itself.

    It is in the log, in its place: the next statement that is synced makes it durable as well.
    """

    values: Sequence[Value]
    changed: int = 0
    """How many rows it inserted, updated or deleted, once it has run."""
    returned: Sequence[sqlite3.Row] = ()
    """The rows of a RETURNING clause, once it has run."""

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the values: parameters are iterable."""
        return iter(self.values)


Parameters: TypeAlias = AppendsParameters | LogParameters | UnsyncedParameters


class WriterConnection(sqlite3.Connection):
    """Runs such statements; made to be passed as ``factory``. All others are synced.

    The log's witness is told of each before its caller is.
    """

    log: WitnessedLog

    def execute(  # type: ignore[override]  # narrower: callers pass them by position
        self,
        statement: str,
        parameters: Sequence[Value] | Parameters = (),
        /,
    ) -> sqlite3.Cursor:
        """Run one statement. A statement without rows has committed when this returns."""
        match parameters:
            case AppendsParameters():
                return self._appended(parameters)
            case LogParameters():
                return self._change_log(parameters)
            case UnsyncedParameters():
                return self._unsynced(statement, parameters)
            case _:
                cursor = super().execute(statement, parameters)
                if not statement.lstrip().startswith("SELECT"):
                    self.log.committed()
                return cursor

    def executescript(self, script: str, /) -> sqlite3.Cursor:
        """Run a script, of which nothing is synced."""
        cursor = super().executescript(script)
        self.log.committed_unsynced()
        return cursor

    def _appended(self, parameters: AppendsParameters) -> sqlite3.Cursor:
        started = time.perf_counter()
        appends = parameters.appends
        with self._transaction(parameters.epoch, parameters.log) as next_offset:
            if next_offset != appends[0].base_offset:
                at = appends[0].base_offset
                raise sqlite3.DatabaseError(f"misplaced: at {at}, but the end is {next_offset}")
            self.executemany(
                _INSERT_CHUNK,
                [(each.base_offset, each.record_count, each.crc32c, each.data) for each in appends],
            )
            batches = [batch for each in appends for batch in each.batches]
            self.executemany(_INSERT_BATCH, map(_row_of, batches, parameters.places or _IN_ROWS))
        parameters.seconds = time.perf_counter() - started
        self.log.committed(appends[-1].next_offset)
        return self.cursor()

    def _change_log(self, parameters: LogParameters) -> sqlite3.Cursor:
        with self._transaction(parameters.epoch, parameters.before):
            super().execute(_SET_LOG, (parameters.after,))
        self.log.committed()
        return self.cursor()

    @contextmanager
    def _transaction(self, epoch: int, log: str) -> Iterator[int]:
        """Run a transaction under a claim and its log; yield the offset at which the tables end."""
        super().execute("BEGIN IMMEDIATE")
        try:
            yield self._checked_end(epoch, log)
            super().execute("COMMIT")
        except BaseException:
            if self.in_transaction:
                super().execute("ROLLBACK")
            raise

    def _checked_end(self, epoch: int, log: str) -> int:
        """Return where the tables end; raise sqlite3.IntegrityError under another claim or log."""
        stored_epoch, stored_log, next_offset = super().execute(_POSITION).fetchone()
        if (stored_epoch, stored_log) != (epoch, log):
            raise sqlite3.IntegrityError(FENCED)
        return int(next_offset)

    def _unsynced(self, statement: str, parameters: UnsyncedParameters) -> sqlite3.Cursor:
        super().execute(_UNSYNCED)
        try:
            cursor = super().execute(statement, parameters.values)
            parameters.returned = cursor.fetchall()
        finally:
            super().execute(_SYNCED)
        parameters.changed = cursor.rowcount
        self.log.committed_unsynced()
        return cursor


def _row_of(batch: StoredBatch, place: Place | None) -> Sequence[Value]:
    values: Sequence[Value] = (
        batch.partition,
        batch.base_offset,
        batch.record_count,
        batch.max_timestamp_ms,
        batch.header,
    )
    if place is None:
        return (*values, batch.payload, None, None, None)
    return (*values, b"", *place)


def unsynced_script(statement: str) -> str:
    """Return a script of one statement that is not synced."""
    return f"{_UNSYNCED}; {statement}; {_SYNCED}"
