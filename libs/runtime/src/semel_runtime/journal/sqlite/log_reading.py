"""What a log has that the tables behind it lack."""

import sqlite3
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from semel_runtime.journal.log.frames import LoggedAppend, LogIdentity, frames_of
from semel_runtime.journal.log.segments import files_of

NOTED_LOG = "SELECT value FROM meta WHERE key = 'log'"
NO_LOG = LogIdentity(0, 0)


class FoundLog(NamedTuple):
    """What was found in a log."""

    appends: Sequence[LoggedAppend] = ()
    """Consecutive ones, from where the tables end."""
    gap: str = ""
    """Which records are missing before later ones that are there; empty: none are."""

    def end(self, start: int) -> int:
        """Return where the journal ends, whose tables end at `start`."""
        return self.appends[-1].next_offset if self.appends else start


def log_text(identity: LogIdentity) -> str:
    """Return what the file says of a log; a mark of 0: it has nothing that the tables lack."""
    return f"{identity.number} {identity.mark}" if identity != NO_LOG else ""


def log_of(text: str | None) -> LogIdentity:
    """Return the log that a text names; raises ValueError for one that is damaged."""
    if not text:
        return NO_LOG
    number, mark = map(int, text.split(" "))
    return LogIdentity(number, mark)


def read_log(folder: Path, identity: LogIdentity, *, start: int) -> FoundLog:
    """Read the appends of a log behind the end of the tables. Raises OSError."""
    if not identity.mark:
        return FoundLog()
    found: list[LoggedAppend] = []
    for path in files_of(folder, identity.number):
        found += frames_of(path.read_bytes(), mark=identity.mark, start=start)
    found.sort(key=attrgetter("base_offset"))
    at = start
    for count, append in enumerate(found):
        if append.base_offset != at:
            gap = (
                f"the log journal.log-{identity.number} in {folder} has records from"
                f" {append.base_offset} on, but records {at} to {append.base_offset - 1} before"
                " them are damaged or missing"
            )
            return FoundLog(found[:count], gap)
        at = append.next_offset
    return FoundLog(found)


def read_noted_log(connection: sqlite3.Connection, folder: Path, *, start: int) -> FoundLog:
    """Read the log that a journal file names. Raises sqlite3.DatabaseError, OSError."""
    row = connection.execute(NOTED_LOG).fetchone()
    try:
        identity = log_of(row[0] if row else None)
    except ValueError as error:
        raise sqlite3.DatabaseError(f"the name of its log is damaged: {row[0]!r}") from error
    return read_log(folder, identity, start=start)
