"""Whether a journal file goes as far as its witness says, and the witness while it is written.

A damaged or shortened write-ahead log has no error in SQLite: its end is where the damage begins.
Then pages of the log may also cover newer ones in the database. So the check comes first, on a
connection that only reads, which leaves database and log as they are.

In front of both is a log of Semel's own (`semel_runtime.journal.log`), which goes further than the
tables. The journal ends where that log ends; "log" alone is SQLite's here.
"""

import sqlite3
from contextlib import ExitStack
from pathlib import Path
from threading import Semaphore
from typing import NamedTuple
from urllib.parse import quote

from semel_runtime.journal.journal_errors import JournalOpenError
from semel_runtime.journal.sqlite.folder import JOURNAL_FILE
from semel_runtime.journal.sqlite.log_index import LogEnd, LogIndex
from semel_runtime.journal.sqlite.log_reading import FoundLog, read_noted_log
from semel_runtime.journal.sqlite.payloads.payload_check import lost_payloads
from semel_runtime.journal.witness import WITNESS_FILE, JournalEnd, Witness, read_witness

WITNESSED = "witnessed"
"""The key in `meta` of a journal that has had a witness."""

_ATTEMPTS = 3
"""Without the folder's lock, the owner writes on while its files are read one after the other."""
_HAS_TABLES = "SELECT count(*) = 2 FROM sqlite_master WHERE name IN ('positions', 'meta')"
_POSITIONS = "SELECT epoch, next_offset FROM positions"
_IS_WITNESSED = "SELECT count(*) FROM meta WHERE key = ?"
_RECOVER = (
    "put back a copy of the whole folder that has all of it, or let `semel recover` take the volume"
    " as it is. Nothing was changed."
)


class FoundEnd(NamedTuple):
    """What a journal file says of its end."""

    end: JournalEnd = JournalEnd(0, 0)
    log: LogEnd = LogEnd(0, 0)
    witnessed: bool = False
    unfilled: FoundLog = FoundLog()
    """What the log in front of the tables has beside them; the end is behind it."""
    lost_payloads: str = ""
    """Which file of payloads is missing or too short; empty: none is."""


def check_end(folder: Path) -> None:
    """Refuse a journal that ends before its witness says. Changes neither.

    Raises JournalOpenError with a sentence that says what to do, and sqlite3.DatabaseError.
    """
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            compare_end(folder, _read_end(folder / JOURNAL_FILE))
        except JournalOpenError:
            if not attempts_left:
                raise
        else:
            return


def compare_end(folder: Path, found: FoundEnd) -> None:
    """Refuse a journal that ends before its witness says.

    Raises JournalOpenError with a sentence that says what to do.
    """
    if damage := found.unfilled.gap or found.lost_payloads:
        raise JournalOpenError(f"{damage}; {_RECOVER}")
    known = read_witness(folder)
    if known is not None:
        _compare(folder, known, found.end, found.log)
    elif found.witnessed:
        raise JournalOpenError(
            f"{folder / WITNESS_FILE} is missing: it says how far the journal beside it goes, so a"
            f" copy of the folder needs it. To be sure that nothing is lost, {_RECOVER}"
        )


def accept_end(folder: Path) -> None:
    """Let the witness say what the journal has, although it may have had more. Idempotent."""
    Witness.make(folder, _read_end(folder / JOURNAL_FILE).end).close()


def _read_end(file: Path) -> FoundEnd:
    if not file.exists():
        return FoundEnd()
    uri = f"file:{quote(str(file))}?mode=ro"
    with ExitStack() as stack:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        stack.callback(connection.close)
        found = end_of_file(connection, file.parent)
        if found == FoundEnd():
            return found
        index = LogIndex(file)
        closed_first = stack.pop_all()
        stack.callback(index.close)
        stack.push(closed_first)
        return found._replace(log=index.end())


def end_of_file(connection: sqlite3.Connection, folder: Path) -> FoundEnd:
    """Return what a journal file says, without SQLite's log; the default if it has no tables yet.

    Raises sqlite3.DatabaseError, OSError.
    """
    if not connection.execute(_HAS_TABLES).fetchone()[0]:
        return FoundEnd()
    epoch, stored = connection.execute(_POSITIONS).fetchone()
    unfilled = read_noted_log(connection, folder, start=stored)
    witnessed = bool(connection.execute(_IS_WITNESSED, (WITNESSED,)).fetchone()[0])
    end = JournalEnd(epoch, unfilled.end(stored))
    lost = lost_payloads(connection, folder)
    return FoundEnd(end, witnessed=witnessed, unfilled=unfilled, lost_payloads=lost)


def _compare(folder: Path, known: JournalEnd, end: JournalEnd, log: LogEnd) -> None:
    file = folder / JOURNAL_FILE
    if end.claim_epoch < known.claim_epoch or end.next_offset < known.next_offset:
        raise JournalOpenError(
            f"{file} ends at offset {end.next_offset} under claim epoch {end.claim_epoch}, but"
            f" {folder / WITNESS_FILE} says that it went to offset {known.next_offset} under claim"
            f" epoch {known.claim_epoch}: it is an older copy, or {file.name}-wal or a file"
            " journal.log-* beside it was deleted, cut or damaged, and acknowledged records are"
            f" lost; {_RECOVER}"
        )
    if _log_is_short(file, known, log):
        raise JournalOpenError(
            f"{file}-wal has {log.frames} intact frames, but {folder / WITNESS_FILE} says that it"
            f" had {known.log_position}: it was cut or damaged, and the rest of it no longer fits"
            f" {file.name}; {_RECOVER}"
        )


def _log_is_short(file: Path, known: JournalEnd, log: LogEnd) -> bool:
    if not known.log_number:
        return False
    if log.number == known.log_number:
        return log.frames < known.log_position
    # SQLite begins the next log, or empties this one, once all of it is in the database.
    log_file = Path(f"{file}-wal")
    is_empty = not log_file.exists() or not log_file.stat().st_size
    return not is_empty and not log.follows(known.log_number)


class WitnessedLog:
    """Writes the witness after each commit that is durable, in the writer's thread.

    The thread of the log in front of the tables does so after each append. Nothing is written
    before `open`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._witness: Witness | None = None
        self._index: LogIndex | None = None
        self._claim_epoch = self._next_offset = 0
        self._seen = self._synced = LogEnd(0, 0)
        self._writing = Semaphore()
        """Of the witness, by one thread at a time: SQLite's, and the one of the log in front."""

    def open(self) -> None:
        """Open the witness, or make it; a connection has the journal open."""
        file = self._folder / JOURNAL_FILE
        witness = Witness.open(self._folder)
        self._witness = witness or Witness.make(self._folder, _read_end(file).end)
        self._claim_epoch, self._next_offset = self._witness.end[:2]
        self._index = LogIndex(file)
        self._seen = self._index.end()

    def claimed(self, claim_epoch: int, next_offset: int) -> None:
        """Note a claim, which is durable, and let it outlast a loss of power."""
        with self._writing:
            self._claim_epoch, self._next_offset = claim_epoch, next_offset
            if self._index is not None:
                self._write(self._index.end())
        self.sync()

    def committed(self, next_offset: int = 0) -> None:
        """Note what a synced statement has committed, if anything; an append: up to where."""
        with self._writing:
            self._next_offset = max(self._next_offset, next_offset)
            if self._index is not None and (end := self._index.end()) != self._seen:
                self._write(end)

    def committed_unsynced(self) -> None:
        """Note that the log has more, which the next synced commit makes durable."""
        if self._index is None:
            return
        with self._writing:
            end = self._index.end()
            if end.number != self._seen.number:
                # The log has begun again, so all of the one before it is in the database, synced.
                self._write(LogEnd(end.number, 0))
            self._seen = end

    def appended(self, next_offset: int) -> None:
        """Note what the log in front of the tables has durably. In the log's thread."""
        with self._writing:
            self._next_offset = next_offset
            if self._witness is not None:
                self._witness.write(JournalEnd(self._claim_epoch, next_offset, *self._synced))

    def sync(self) -> None:
        """Let the witness outlast a loss of power."""
        if self._witness is not None:
            self._witness.sync()

    def close(self) -> None:
        """Close, after all connections: the last one has put the log into the database."""
        if self._index is not None:
            self._index.close()
        if self._witness is not None:
            # A fenced process knows nothing of the records of its successor.
            if self._witness.read().claim_epoch == self._claim_epoch:
                self._witness.write(JournalEnd(self._claim_epoch, self._next_offset))
            self._witness.close()
        self._index = self._witness = None

    def _write(self, end: LogEnd) -> None:
        self._seen = self._synced = end
        if self._witness is not None:
            self._witness.write(JournalEnd(self._claim_epoch, self._next_offset, *end))
