"""The connections to a journal file: one writer, a few readers.

A writer that met any error it cannot explain is dead: what reached the disk is unknown.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from pathlib import Path
from sqlite3 import Row
from urllib.parse import quote

import aiosqlite

from semel_common.file_modes import make_private_file
from semel_runtime.journal.journal_errors import (
    JournalCorruptError,
    JournalError,
    JournalFencedError,
    JournalOpenError,
    JournalUnknownError,
)
from semel_runtime.journal.sqlite.folder import folder_sentence
from semel_runtime.journal.sqlite.journal_end import WitnessedLog
from semel_runtime.journal.sqlite.opening import cause
from semel_runtime.journal.sqlite.schema import FENCED
from semel_runtime.journal.sqlite.statements import (
    DAMAGED,
    Parameters,
    UnsyncedParameters,
    Value,
    WriterConnection,
    unsynced_script,
)

_CACHED_STATEMENTS = 256
"""An append's statement differs by its number of batches."""

_NO_TEXT = "Could not decode to UTF-8"
"""How the driver begins to say that bytes are named text: by a damaged row, for there is none."""

BUSY_TIMEOUT_MS = 5_000
"""How long a write waits for another process that has the file locked."""

_CHECKPOINT_WAIT_MS = 100
"""How long an append may be held up by a checkpoint that waits for readers."""


_WITNESS_SYNC_SECONDS = 1.0
"""How much of the witness a loss of power may take, about: it is behind the journal then."""


class Writer:
    """The connection that writes. Each call is one transaction, and one hop to its thread."""

    def __init__(
        self,
        connection: aiosqlite.Connection,
        log: WitnessedLog,
        *,
        log_file: Path,
        log_bytes_max: int,
    ) -> None:
        self._connection = connection
        self._log = log
        self._log_synced_at = 0.0
        self._syncing: asyncio.Future[None] | None = None
        self._log_file = log_file
        self._log_bytes_max = log_bytes_max
        self._empty_log_at_bytes = log_bytes_max
        self._epoch: int | None = None
        self._failure: Exception | None = None
        self._listener: Callable[[JournalUnknownError], None] | None = None
        self.owes_sync = False
        """Whether something was deleted that the next append has to make durable with it."""

    @property
    def epoch(self) -> int:
        """The epoch that this handle has claimed."""
        assert self._epoch is not None, "claim comes before everything else"
        return self._epoch

    def own(self, epoch: int) -> None:
        """Note a successful claim."""
        self._epoch = epoch

    async def witness_claim(self, *, next_offset: int) -> None:
        """Let the witness know of the claim, and where the journal ends."""
        try:
            await asyncio.to_thread(self._log.claimed, self.epoch, next_offset)
        except OSError as error:
            raise self._die(error) from error

    async def execute(
        self, statement: str, values: Sequence[Value] | Parameters = ()
    ) -> Sequence[Row]:
        """Run one statement durably and return its rows.

        Cancelling the caller loses only the rows. Raises JournalFencedError if the statement's
        check says so; JournalUnknownError for anything else, now and ever after.
        """
        return await self._run(statement, values)

    async def execute_unsynced(self, statement: str, values: Sequence[Value]) -> UnsyncedParameters:
        """Run one change; return how many rows it changed, and the rows of its RETURNING clause.

        All readers see it; until `execute` has written something, a loss of power may undo it.
        Raises what `execute` does.
        """
        parameters = UnsyncedParameters(values)
        await self._run(statement, parameters)
        return parameters

    async def execute_steps_unsynced(self, statement: str) -> None:
        """Run one statement to its end that has a row for each step, but no columns.

        `execute` would take only the first step. Raises JournalUnknownError.
        """
        self.check_alive()
        try:
            await self._connection.executescript(unsynced_script(statement))
        except Exception as error:
            raise self._die(error) from error

    async def empty_log(self) -> bool:
        """Write the write-ahead log into the database, which thereby becomes as short as it may.

        Returns whether it is done: readers may hold it up. Raises JournalUnknownError.
        """
        self.check_alive()
        run = self._connection.execute_fetchall
        try:
            await run(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT_MS}")
            busy, _, _ = next(iter(await run("PRAGMA wal_checkpoint(TRUNCATE)")))
            await run(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        except Exception as error:
            raise self._die(error) from error
        return not busy

    async def check_epoch(self) -> None:
        """Raise JournalFencedError if another owner has claimed the journal."""
        rows = await self.execute("SELECT epoch FROM owner")
        if rows[0][0] != self.epoch:
            raise JournalFencedError(claim_epoch=self.epoch, stored_epoch=rows[0][0])

    def on_death(self, listener: Callable[[JournalUnknownError], None]) -> None:
        """See `Journal.on_death`."""
        if self._failure is None:
            self._listener = listener
        else:
            listener(self._unknown(self._failure))

    def dead(self, why: str) -> JournalUnknownError:
        """Give up on this handle, and return the error to raise."""
        return self._die(JournalUnknownError(why))

    async def close(self) -> None:
        """Wait until the witness is synced; the connection closes after all that is queued."""
        if self._syncing is not None:
            await asyncio.wait([self._syncing])

    async def _run(self, statement: str, parameters: Iterable[Value]) -> Sequence[Row]:
        self.check_alive()
        try:
            rows = list(await self._connection.execute_fetchall(statement, parameters))
            await self._bound_log()
            self.sync_witness()
        except aiosqlite.IntegrityError as error:
            if str(error) != FENCED:
                raise self._die(error) from error
        except Exception as error:
            raise self._die(error) from error
        else:
            return rows
        await self.check_epoch()
        raise self.dead("a statement was fenced, but the epoch is ours")

    async def _bound_log(self) -> None:
        """Empty the write-ahead log once it is too long.

        SQLite's own checkpoints never wait, so they restart the log only in a moment without
        readers, and busy readers leave none. This one waits for the readers of now, but not for
        long, since appends wait with it. If it fails, the next one comes as much log later.
        """
        size_bytes = self._log_file.stat().st_size
        if size_bytes <= self._empty_log_at_bytes:
            return
        is_empty = await self.empty_log()
        self._empty_log_at_bytes = self._log_bytes_max + (0 if is_empty else size_bytes)

    def sync_witness(self) -> None:
        """Let the witness outlast a loss of power, once a second, and let no write wait for it."""
        now = asyncio.get_running_loop().time()
        if now - self._log_synced_at < _WITNESS_SYNC_SECONDS:
            return
        if self._syncing is None or self._syncing.done():
            self._log_synced_at = now
            self._syncing = asyncio.get_running_loop().run_in_executor(None, self._log.sync)
            self._syncing.add_done_callback(self._synced)

    def _synced(self, syncing: asyncio.Future[None]) -> None:
        if isinstance(error := syncing.exception(), Exception):
            self._die(error)

    def check_alive(self) -> None:
        """Raise JournalUnknownError if the handle is dead."""
        if self._failure is not None:
            raise JournalUnknownError(f"the handle is dead: {self._failure}") from self._failure

    def _die(self, error: Exception) -> JournalUnknownError:
        is_first, self._failure = self._failure is None, error
        unknown = self._unknown(error)
        if is_first and self._listener is not None:
            self._listener(unknown)
        return unknown

    def _unknown(self, error: Exception) -> JournalUnknownError:
        if isinstance(error, JournalUnknownError):
            return error
        return JournalUnknownError(
            f"writing {self._log_file} failed: {cause(self._log_file, error)}"
        )


class Readers:
    """Read-only connections, taken in turn."""

    def __init__(self, file: Path, connections: Sequence[aiosqlite.Connection]) -> None:
        self._file = file
        self._connections = connections
        self._turn = cycle(connections)

    @classmethod
    async def open(cls, file: Path, count: int) -> "Readers":
        """Open `count` connections to a journal file that exists."""
        connections: list[aiosqlite.Connection] = []
        try:
            for _ in range(count):
                uri = f"file:{quote(str(file))}?mode=ro"
                connections.append(await aiosqlite.connect(uri, uri=True, isolation_level=None))
        except BaseException:
            await cls(file, connections).close()
            raise
        return cls(file, connections)

    async def fetch(self, statement: str, parameters: Iterable[Value]) -> Sequence[Row]:
        """Run one bounded query. Raises JournalCorruptError, JournalError."""
        try:
            return list(await next(self._turn).execute_fetchall(statement, parameters))
        except aiosqlite.OperationalError as error:
            if str(error).startswith(_NO_TEXT):
                raise self._damaged(error) from error
            raise JournalError(f"reading {self._file} failed: {error}") from error
        except DAMAGED as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> JournalCorruptError:
        reason = str(error) or "a value is longer than the memory"
        return JournalCorruptError(f"{self._file} is damaged: {reason}")

    async def close(self) -> None:
        """Close all."""
        for connection in self._connections:
            await connection.close()


async def open_writer(file: Path, log: WitnessedLog) -> aiosqlite.Connection:
    """Connect for writing, in autocommit mode, and tell the witness of the log of commits.

    SQLite gives the files beside this one, such as the write-ahead log, its mode. Raises
    JournalOpenError.
    """
    try:
        await asyncio.to_thread(make_private_file, file)
    except OSError as error:
        raise JournalOpenError(folder_sentence(file.parent, error)) from error

    def connect(*args: object, **options: object) -> WriterConnection:
        connection = WriterConnection(*args, **options)  # type: ignore[arg-type]  # passed on
        connection.log = log
        return connection

    return await aiosqlite.connect(
        file,
        isolation_level=None,
        cached_statements=_CACHED_STATEMENTS,
        factory=connect,
    )
