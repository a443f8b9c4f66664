"""Reading the journal file of a stopped service from end to end, to find what is damaged.

Theory of operation. The check claims, migrates, repairs and writes nothing. It holds the folder's
lock shared, so that no service starts meanwhile, and refuses a service that runs. A file without a
write-ahead log is opened as one that never changes. A file with a log is opened read-only, as the
readers of a service open it: SQLite reads the log and moves none of it. The check removes the index
of the log that SQLite makes beside it. SQLite ends a damaged log where the damage begins, without
an error, so the check compares the end of the journal with its witness, as a start does.

Damage in one place does not end the check: each kind of content is read by itself.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from semel_runtime.journal.chunks import check_types, unpack_piece, unpack_records
from semel_runtime.journal.contract import Entry, StoredBatch
from semel_runtime.journal.journal_errors import (
    JournalCorruptError,
    JournalInUseError,
    JournalNewerError,
    JournalOpenError,
)
from semel_runtime.journal.log.frames import LoggedAppend
from semel_runtime.journal.sqlite.folder import BUSY, JOURNAL_FILE, LOCK_FILE
from semel_runtime.journal.sqlite.journal_end import compare_end, end_of_file
from semel_runtime.journal.sqlite.log_index import LogEnd, LogIndex
from semel_runtime.journal.sqlite.payloads.payload_rows import stored_batches
from semel_runtime.journal.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION
from semel_runtime.journal.sqlite.statements import DAMAGED

_PROBLEMS_MAX = 1_000
"""As many lines of SQLite's own check are told."""

_FIRST_START = {
    JOURNAL_FILE,
    LOCK_FILE,
    *(f"{JOURNAL_FILE}-{end}" for end in ("journal", "wal", "shm")),
}
"""The files that a first start makes before anything is durable, and no more."""
_INTEGRITY = f"PRAGMA integrity_check({_PROBLEMS_MAX})"
_OWNER = "SELECT snapshot, snapshot_pieces, first_offset FROM owner"
_PIECE = "SELECT crc32c, data FROM snapshot_pieces WHERE snapshot = ? AND number = ?"
_CHUNKS = "SELECT base_offset, record_count, crc32c, data FROM chunks ORDER BY base_offset"
_BATCHES = """
SELECT partition, base_offset, record_count, max_timestamp_ms, header, payload, payload_file,
    payload_position, payload_bytes
FROM (
    SELECT rowid AS batch FROM batches INDEXED BY batches_by_offset
    WHERE partition = ? AND base_offset >= ? ORDER BY base_offset
) CROSS JOIN batches ON batches.rowid = batch
"""


class FoundDamage(Struct, frozen=True, kw_only=True):
    """One damaged place."""

    file: str
    place: str
    """Which part of the file, or which topic, partition and offset."""
    problem: str


class JournalFile:
    """The file of a stopped service. Made by `open_stopped`."""

    def __init__(self, connection: sqlite3.Connection, file: Path, after: ExitStack) -> None:
        self._connection = connection
        self._file = file
        self._after = after
        self._appends: Sequence[LoggedAppend] | None = None
        self.found: list[FoundDamage] = []
        """What was found so far."""
        self.is_sound = True
        """Whether all records could be read, so far."""

    def note(self, place: str, problem: object) -> None:
        """Note damage."""
        self.found.append(FoundDamage(file=str(self._file), place=place, problem=str(problem)))

    def is_unfinished(self) -> bool:
        """Whether the first start of a service ended too early: then the folder holds nothing."""
        if not {each.name for each in self._file.parent.iterdir()} <= _FIRST_START:
            return False
        if self._file.with_name(f"{JOURNAL_FILE}-journal").exists():
            return True  # Only a journal without tables is written with it.
        try:
            if not self._rows("SELECT name FROM sqlite_master"):
                return True
            noted = "SELECT value FROM meta WHERE key = 'service'"
            return not self._rows(noted) and not self._rows("SELECT base_offset FROM chunks")
        except DAMAGED:
            return False  # The check names the damage.

    def service(self) -> str:
        """Return the service that the file belongs to; empty if it cannot be read."""
        try:
            rows = self._rows("SELECT value FROM meta WHERE key = 'service'")
        except DAMAGED as error:
            self.note("the table meta", error)
            return ""
        return str(rows[0][0]) if rows else ""

    def check_structure(self) -> None:
        """Let SQLite check its pages, and each index against its table."""
        try:
            for (line,) in self._rows(_INTEGRITY):
                if line != "ok":
                    self.note("the pages of the file", line)
        except DAMAGED as error:
            self.note("the pages of the file", error)

    def check_end(self) -> None:
        """Compare how far the journal goes with what its witness says."""
        try:
            found = end_of_file(self._connection, self._file.parent)
            found = found._replace(log=self._log_end())
            compare_end(self._file.parent, found)
        except (*DAMAGED, JournalOpenError) as error:
            self.note("the end of the journal", error)

    def _log_end(self) -> LogEnd:
        if not _has_log(self._file):
            return LogEnd(0, 0)
        index = LogIndex(self._file)
        self._after.callback(index.close)  # Closed before, it would drop the connection's locks.
        return index.end()

    def snapshot(self) -> Iterator[Entry]:
        """Yield the entries of the snapshot up to the first piece that is damaged or missing."""
        try:
            snapshot, count, _ = self._owner()
            for number in range(count):
                for row in self._rows(_PIECE, snapshot, number):
                    yield from unpack_piece(snapshot, number, *row)
                    break
                else:
                    self.note_unsound(f"piece {number} of snapshot {snapshot}", "is missing")
                    return
        except (*DAMAGED, JournalCorruptError) as error:
            self.note_unsound("the snapshot", error)

    def records(self) -> Iterator[Entry]:
        """Yield the records behind the snapshot; those of a damaged chunk are left out."""
        try:
            _, _, at = self._owner()
            for row in self._connection.execute(_CHUNKS):
                base_offset, count = row[:2]
                check_types((base_offset, count), int, int)
                if base_offset + count <= at:
                    continue  # The snapshot stands for it.
                if base_offset > at:
                    self.note_unsound(f"records {at} to {base_offset - 1}", "are missing")
                at = base_offset + count
                yield from self._unpacked(row)
            for append in self._unfilled():
                fields = (append.base_offset, append.record_count, append.crc32c, append.data)
                yield from self._unpacked(fields)
        except (*DAMAGED, JournalCorruptError) as error:
            self.note_unsound("the records", error)

    def batches(self, partition: int, start: int, *, name: str) -> Iterator[StoredBatch]:
        """Yield the batches of a partition in order, from the one that holds an offset on."""
        at = start
        try:
            first = self._first_batch(partition, start)
            for row in self._connection.execute(_BATCHES, (partition, first)):
                at = row[1]
                (batch,) = stored_batches(self._file.parent, [row])
                yield batch
            for append in self._unfilled():
                for batch in append.batches:
                    if batch.partition == partition and batch.base_offset >= start:
                        yield batch
        except (*DAMAGED, JournalCorruptError) as error:
            self.note(f"{name}, at or after offset {at}", error)

    def _first_batch(self, partition: int, offset: int) -> int:
        """Return the base offset of the batch that holds an offset, or else the offset."""
        found = self._rows(
            "SELECT base_offset, record_count FROM batches WHERE partition = ? AND base_offset <= ?"
            " ORDER BY base_offset DESC LIMIT 1",
            partition,
            offset,
        )
        for base_offset, record_count in found:
            if base_offset + record_count > offset:
                return int(base_offset)
        return offset

    def _owner(self) -> tuple[int, int, int]:
        rows = self._rows(_OWNER)
        if len(rows) != 1:
            raise JournalCorruptError(f"the table owner has {len(rows)} rows, not 1")
        check_types(rows[0], int, int, int)
        snapshot, count, first_offset = rows[0]
        return snapshot, count, first_offset

    def _unfilled(self) -> Sequence[LoggedAppend]:
        """Return what the log in front of the tables has beside them; `check_end` notes damage."""
        if self._appends is None:
            found = end_of_file(self._connection, self._file.parent)
            self._appends = found.unfilled.appends
        return self._appends

    def _unpacked(self, row: tuple[int, int, int, bytes]) -> Sequence[Entry]:
        try:
            return unpack_records(*row)
        except JournalCorruptError as error:
            self.note_unsound(f"records {row[0]} to {row[0] + row[1] - 1}", error)
            return ()

    def note_unsound(self, place: str, problem: object) -> None:
        """Note damage that later records depend on."""
        self.is_sound = False
        self.note(place, problem)

    def _rows(self, statement: str, *values: int) -> list[sqlite3.Row]:
        return self._connection.execute(statement, values).fetchall()


@contextmanager
def open_stopped(folder: Path) -> Iterator[JournalFile]:
    """Open the journal of a stopped service for reading.

    Raises JournalOpenError (JournalInUseError) with a sentence that says what to do.
    """
    file = folder / JOURNAL_FILE
    if not file.is_file():
        raise JournalOpenError(f"{folder} has no {JOURNAL_FILE}: name the data folder of a service")
    with _held(folder), ExitStack() as after, _connected(file) as connection:
        journal = JournalFile(connection, file, after)
        try:
            _check_kind(connection, file)
        except DAMAGED as error:
            journal.note("the header of the file", error)
        yield journal


def _check_kind(connection: sqlite3.Connection, file: Path) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id != APPLICATION_ID:
        raise sqlite3.DatabaseError(f"it has the mark {application_id:#x}, not {APPLICATION_ID:#x}")
    if version > SCHEMA_VERSION:
        raise JournalNewerError(f"schema version {version} in {file}")


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep services away from a folder meanwhile; a copy without a lock file has none."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except OSError as error:
        if error.errno not in BUSY:
            raise
        raise JournalInUseError(
            f"a service is running on {folder}: stop it first, or check a copy of its volume"
        ) from error
    finally:
        os.close(descriptor)


@contextmanager
def _connected(file: Path) -> Iterator[sqlite3.Connection]:
    if not _has_log(file):
        with closing(_connect(file, "immutable=1")) as connection:
            yield connection
        return
    index = file.with_name(f"{file.name}-shm")
    is_new = not index.exists()
    try:
        with closing(_connect(file, "mode=ro")) as connection:
            yield connection
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_CANTOPEN:
            raise
        raise JournalOpenError(
            f"{_log_of(file)} cannot be read in place: its folder must be writable, or check a copy"
            " of it"
        ) from error
    finally:
        if is_new:
            index.unlink(missing_ok=True)


def _has_log(file: Path) -> bool:
    log = _log_of(file)
    return log.exists() and log.stat().st_size > 0


def _log_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def _connect(file: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{how}", uri=True, isolation_level=None)
