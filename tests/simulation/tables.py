"""SQLite on a simulated disk: the real one, in memory; its commits take time, and can be lost.

A statement takes effect at once and as a whole, when its time has come. A commit that is synced is
on the disk then, with all before it. A loss of power takes the last of the commits that were not
synced. Of a process that ends, the commit that is under way may take effect or not.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from sqlite3 import Row
from typing import Protocol, TypeAlias, cast

from semel_runtime.journal.log.frames import LoggedAppend
from semel_runtime.journal.sqlite import batches
from semel_runtime.journal.sqlite.journal_end import FoundEnd, WitnessedLog, end_of_file
from semel_runtime.journal.sqlite.statements import (
    AppendsParameters,
    LogParameters,
    Parameters,
    UnsyncedParameters,
    Value,
    WriterConnection,
    unsynced_script,
)
from simulation.files import Folder, SimulatedPath
from simulation.world import Life, life_of_now

Given: TypeAlias = Sequence[Value] | Parameters
_READ_S = 2e-5


class Watcher(Protocol):
    """Is told of the statements of one handle, in their order."""

    def logged(self, text: str) -> None:
        """Be told that the log in front of the tables is its own now."""
        ...

    def stored(self, text: str, appends: Sequence[LoggedAppend]) -> None:
        """Be told that the tables have appends, of the log of that text."""
        ...

    def rewriting(self, partition: int) -> Callable[[], None]:
        """Be told that batches of a partition are to change; answer a call for afterwards."""
        ...


@dataclass(slots=True)
class _Statement:
    run: Callable[[], list[Row]]
    is_synced: bool
    seconds: float
    done: "asyncio.Future[list[Row]]"


class Tables:
    """The database of one volume."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.connection = sqlite3.connect(
            ":memory:", isolation_level=None, factory=WriterConnection
        )
        self._states: list[bytes] = []
        """Of the disk, and after each later commit; none: all commits are on the disk."""
        self.handles: list[Connection] = []
        self.commits = 0
        """How many there were: where SQLite's own log ends, for the witness."""
        folder.database = self

    @staticmethod
    def at(file: SimulatedPath) -> "Tables":
        """Return the database of a file."""
        found = file.folder.database
        assert isinstance(found, Tables), "a folder has one database"
        return found

    def fetch(self, query: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Ask at once, as a look from outside of the simulation does."""
        return sqlite3.Connection.execute(self.connection, query, parameters).fetchall()

    def found_end(self) -> FoundEnd:
        """Return what the files say of the end."""
        folder = cast(Path, SimulatedPath(self.folder))
        return end_of_file(self.connection, folder)

    def commit(self, run: Callable[[], list[Row]], *, is_synced: bool) -> list[Row]:
        """Run a statement that may write."""
        if not is_synced and not self._states:
            self._states.append(self.connection.serialize())
        rows = run()
        self.commits += 1
        if is_synced:
            self._states.clear()
        else:
            self._states.append(self.connection.serialize())
        return rows

    def end(self, life: Life | None, random: Random) -> None:
        """Let a process end (None: all of them), perhaps after the commits that are under way."""
        ended = [each for each in self.handles if life is None or each.life is life]
        for each in ended:
            self.handles.remove(each)
        random.shuffle(ended)
        for each in ended:
            each.end(takes_effect=random.random() < 0.5)

    def lose_power(self, random: Random) -> None:
        """Lose any last commits that were not synced."""
        if self._states:
            self.put(random.choice(self._states))
            self._states.clear()

    def put(self, content: bytes) -> None:
        """Let the database have this content."""
        with closing(sqlite3.connect(":memory:")) as other:
            other.deserialize(content)
            other.backup(self.connection)


class Connection:
    """One connection of a handle, with a thread of its own. Stands for aiosqlite's."""

    def __init__(self, tables: Tables, log: WitnessedLog, watcher: Watcher | None = None) -> None:
        self._tables = tables
        self._log = log
        self._watcher = watcher
        self._queue: deque[_Statement] = deque()
        self.life = life_of_now()
        tables.handles.append(self)

    async def execute_fetchall(self, statement: str, parameters: Given = ()) -> list[Row]:
        """See ``aiosqlite.Connection``."""
        is_read = statement.lstrip().startswith(("SELECT", "WITH", "PRAGMA"))
        is_synced = not is_read and not isinstance(parameters, UnsyncedParameters)
        return await self._soon(
            lambda: self._execute(statement, parameters, is_read=is_read, is_synced=is_synced),
            is_synced=is_synced,
        )

    async def executescript(self, script: str) -> None:
        """See ``aiosqlite.Connection``."""

        def run() -> list[Row]:
            self._tables.connection.log = self._log
            try:
                return self._tables.commit(
                    lambda: self._tables.connection.executescript(script).fetchall(),
                    is_synced=not script.startswith(unsynced_script("").partition(";")[0]),
                )
            except sqlite3.Error:
                self._tables.connection.rollback()  # Its process would take the rest with it.
                raise

        await self._soon(run, is_synced=False)

    async def rollback(self) -> None:
        """See ``aiosqlite.Connection``: a script that fails is rolled back at once."""

    async def close(self) -> None:
        """See ``aiosqlite.Connection``."""
        if self._queue:
            await asyncio.wait([self._queue[-1].done])
        if self in self._tables.handles:
            self._tables.handles.remove(self)

    def end(self, *, takes_effect: bool) -> None:
        """End with its process."""
        if takes_effect and self._queue and self._queue[0].is_synced:
            try:
                self._queue[0].run()
            except sqlite3.Error:
                return  # The commit was fenced, and its process does not hear of it.

    async def _soon(self, run: Callable[[], list[Row]], *, is_synced: bool) -> list[Row]:
        seconds = self._tables.folder.sync_s() if is_synced else _READ_S
        loop = asyncio.get_running_loop()
        statement = _Statement(run, is_synced, seconds, loop.create_future())
        self._queue.append(statement)
        if len(self._queue) == 1:
            loop.call_later(seconds, self._step)
        return await asyncio.shield(statement.done)

    def _step(self) -> None:
        statement = self._queue[0]
        try:
            rows = statement.run()
        except Exception as error:  # noqa: BLE001 - the future has it
            if not statement.done.done():
                statement.done.set_exception(error)
        else:
            if not statement.done.done():
                statement.done.set_result(rows)
        self._queue.popleft()
        if self._queue:
            asyncio.get_running_loop().call_later(self._queue[0].seconds, self._step)

    def _execute(
        self, statement: str, parameters: Given, *, is_read: bool, is_synced: bool
    ) -> list[Row]:
        connection = self._tables.connection
        connection.log = self._log

        def run() -> list[Row]:
            return connection.execute(statement, parameters).fetchall()

        if is_read:
            return run()
        after = self._before(statement, parameters)
        rows = self._tables.commit(run, is_synced=is_synced)
        after()
        return rows

    def _before(self, statement: str, parameters: Given) -> Callable[[], None]:
        watcher = self._watcher
        if watcher is None:
            return _nothing
        match parameters:
            case AppendsParameters(log=log, appends=appends):
                return lambda: watcher.stored(log, appends)
            case LogParameters(after=log):
                return lambda: watcher.logged(log)
            case [_, int(partition), *_] if statement.startswith(batches._REWRITE):
                return watcher.rewriting(partition)
            case _:
                return _nothing


def _nothing() -> None:
    """Do nothing."""
