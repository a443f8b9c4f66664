"""The machine of the database: one SQLite in memory, behind a connection that can be lost.

Each transaction works on a copy of the committed state at its begin. Its commit repeats its changes
on the committed state of that time; if a change has another effect there, the commit fails with a
serialization failure. A commit whose connection is lost has taken effect, or has not, or will in a
while.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import TypeVar

from simulation.network import Trace
from simulation.world import WORLD, SimulatedLoop

from aiosemel.database import Row, Value

T = TypeVar("T")

LATE_S = (0.05, 6.0)
"""When a commit takes effect whose connection is lost."""
_DECISION = "INSERT INTO semel_transaction (name, outcome,"
_OUTBOX = "INSERT INTO semel_outbox (outbox,"


class DatabaseError(Exception):
    """An error with PostgreSQL's code for its kind."""

    sqlstate = ""


class LostConnectionError(DatabaseError):
    """The connection is lost."""

    sqlstate = "08006"


class ConflictError(DatabaseError):
    """The transaction could not be serialized."""

    sqlstate = "40001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mood:
    """How the database and its network are at a time."""

    delay_s: tuple[float, float] = (0.0002, 0.002)
    lost: float = 0.0
    """The share of calls whose connection is lost."""
    conflicts: float = 0.0
    """The share of commits that fail."""


FAIR = Mood()
FOUL = Mood(delay_s=(0.0005, 0.05), lost=0.02, conflicts=0.05)


@dataclass(frozen=True, slots=True)
class _Change:
    statement: str
    parameters: Sequence[Value]
    rows: int


class Connection:
    """One transaction, on the machine's side."""

    def __init__(self, view: sqlite3.Connection, generation: int) -> None:
        self.view = view
        self.generation = generation
        self.changes: list[_Change] = []


class Machine:
    """The database over its restarts."""

    def __init__(self, loop: SimulatedLoop, random: Random, trace: Trace) -> None:
        self._loop = loop
        self._random = random
        self._trace = trace
        self._store = _opened(None)
        self._up = True
        self._generation = 0
        self._ids = count(1)
        self.mood = FOUL
        self._awaited: tuple[str, Callable[[], None]] | None = None
        self.commits = 0
        self.doubts = 0
        """Commits whose callers were not told."""

    # -- what happens to it ----------------------------------------------------------------------

    def restart(self, down_s: float) -> None:
        """Lose all connections, and be away for a while; what is committed stays."""
        self._trace("database", "restart", down_s)
        self._generation += 1
        self._up = False
        self._loop.call_later(down_s, self._start, self._generation, context=WORLD)

    def _start(self, generation: int) -> None:
        if generation == self._generation:
            self._up = True

    def backup(self) -> bytes:
        """Return the committed state."""
        return self._store.serialize()

    def restore(self, backup: bytes) -> None:
        """Go back to a backup; the ids of rows go back, too."""
        self._trace("database", "restore")
        self._generation += 1
        self._store = _opened(backup)

    def look(self, query: str) -> list[tuple[int | str, ...]]:
        """Return rows at once: for the judge."""
        return self._store.execute(query).fetchall()

    def change(self, statement: str) -> None:
        """Run a statement at once: for the story."""
        self._store.execute(statement)

    def when_decided(self, transactional_id: str, call: Callable[[], None]) -> None:
        """Call when the next decision to commit a transaction of this id comes, before it."""
        self._awaited = (f":{transactional_id}", call)

    # -- calls -----------------------------------------------------------------------------------

    async def begin(self) -> Connection:
        """Open a transaction."""
        return await self._call(None, self._begin)

    async def run(
        self, connection: Connection, statement: str, parameters: Sequence[Value]
    ) -> tuple[int, Sequence[Row]]:
        """Run a statement; returns the number of rows that it matched, and rows of a query."""
        return await self._call(connection, lambda: self._run(connection, statement, parameters))

    async def commit(self, connection: Connection) -> None:
        """Commit. After a lost connection, the outcome is open."""
        await self._call(connection, lambda: self._commit(connection), is_commit=True)

    async def _call(
        self, connection: Connection | None, work: Callable[[], T], *, is_commit: bool = False
    ) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()
        self._later(self._arrive, answer, connection, work, is_commit)
        return await answer

    def _arrive(
        self,
        answer: "asyncio.Future[T]",
        connection: Connection | None,
        work: Callable[[], T],
        is_commit: bool,
    ) -> None:
        is_open = connection is None or connection.generation == self._generation
        if not self._up or not is_open:
            self._later(_fail, answer, LostConnectionError("the database was started again"))
        elif self._random.random() < self.mood.lost:
            self._lose(answer, connection, work, is_commit)
        else:
            try:
                self._later(_succeed, answer, work())
            except (sqlite3.Error, DatabaseError) as error:
                self._later(_fail, answer, error)

    def _lose(
        self,
        answer: "asyncio.Future[T]",
        connection: Connection | None,
        work: Callable[[], T],
        is_commit: bool,
    ) -> None:
        """Lose a connection; a commit has taken effect, or has not, or will."""
        if is_commit and connection is not None:
            self.doubts += 1
            delay_s = self._random.choice((None, 0.0, self._random.uniform(*LATE_S)))
            self._trace("database", "commit in doubt", delay_s)
            if delay_s is not None:
                self._loop.call_later(delay_s, self._late, connection, work, context=WORLD)
        elif connection is not None:
            connection.generation = -1
        self._later(_fail, answer, LostConnectionError("the connection is lost"))

    def _late(self, connection: Connection, work: Callable[[], T]) -> None:
        try:
            if connection.generation == self._generation and self._up:
                work()
        except (sqlite3.Error, DatabaseError) as error:
            self._trace("database", "late commit failed", repr(error))
        finally:
            connection.generation = -1

    def _later(self, call: Callable[..., object], *args: object) -> None:
        delay_s = self._random.uniform(*self.mood.delay_s)
        self._loop.call_later(delay_s, call, *args, context=WORLD)

    # -- the work --------------------------------------------------------------------------------

    def _begin(self) -> Connection:
        view = _opened(self._store.serialize())
        view.execute("BEGIN")
        return Connection(view, self._generation)

    def _run(
        self, connection: Connection, statement: str, parameters: Sequence[Value]
    ) -> tuple[int, Sequence[Row]]:
        self._tell(statement, parameters)
        if statement.startswith(_OUTBOX):  # A row has its id before it is committed.
            statement = statement.replace("(", "(id, ", 1).replace("(?", "(?, ?", 1)
            parameters = (next(self._ids), *parameters)
        cursor = connection.view.execute(statement, parameters)
        if statement.partition(" ")[0] in ("INSERT", "UPDATE", "DELETE"):
            connection.changes.append(_Change(statement, parameters, cursor.rowcount))
        return cursor.rowcount, cursor.fetchall()

    def _tell(self, statement: str, parameters: Sequence[Value]) -> None:
        if self._awaited is None or not (parameters and statement.startswith(_DECISION)):
            return
        end, call = self._awaited
        if parameters[1] == "committed" and str(parameters[0]).endswith(end):
            self._awaited = None
            call()

    def _commit(self, connection: Connection) -> None:
        if self._random.random() < self.mood.conflicts:
            raise ConflictError("the database has chosen a victim")
        self._store.execute("BEGIN")
        try:
            differing = [each for each in connection.changes if self._repeat(each) != each.rows]
        except sqlite3.Error as error:
            self._store.execute("ROLLBACK")
            raise ConflictError(str(error)) from error
        if differing:
            self._store.execute("ROLLBACK")
            raise ConflictError(f"{differing[0]} has matched other rows")
        self._store.execute("COMMIT")
        connection.view.close()
        self.commits += 1
        connection.generation = -1

    def _repeat(self, change: _Change) -> int:
        return self._store.execute(change.statement, change.parameters).rowcount


def _opened(content: bytes | None) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    if content is not None:
        connection.deserialize(content)
    return connection


def _succeed(answer: "asyncio.Future[T]", result: T) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: "asyncio.Future[T]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
