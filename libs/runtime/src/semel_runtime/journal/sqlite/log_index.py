"""Where SQLite's write-ahead log ends, as the index beside it says (`journal.db-shm`).

The header of that index is part of the file format (https://sqlite.org/walformat.html#walidxfmt):
the number of valid frames, and the two salts that the log's header has. The first salt rises by one
each time the log begins again, which happens only once all its frames are in the database. Recovery
after a crash writes the header again, with the frames that have proved valid.

POSIX drops all locks of a process on a file when the process closes any descriptor of it. So the
descriptor here is closed after the connections.
"""

import os
import struct
from pathlib import Path
from typing import NamedTuple

_HEADER = struct.Struct("=16xI12xII")
"""As the machine orders bytes: the frames, 4 + 8 bytes that do not count here, the salts."""
_SALTS = slice(32, 40)
_SALT = 1 << 32
_RISE_MAX = 1 << 20


class LogEnd(NamedTuple):
    """One log, and how many frames it has."""

    number: int
    """Both salts; 0: the log is empty, or its header is unreadable."""
    frames: int

    def follows(self, number: int) -> bool:
        """Whether this log can have begun after the log of that number.

        The next one may have no frames yet. Later ones are of a program that wrote no witness.
        """
        rise = ((self.number >> 32) - (number >> 32)) % _SALT
        return rise == 1 or (1 < rise < _RISE_MAX and self.frames > 0)


class LogIndex:
    """The index of one log, open for reading."""

    def __init__(self, file: Path) -> None:
        """Open the index of a database; a connection must have made it."""
        self._descriptor = os.open(f"{file}-shm", os.O_RDONLY | os.O_CLOEXEC)

    def end(self) -> LogEnd:
        """Return the end of now. A system call; no transaction may be under way."""
        header = os.pread(self._descriptor, _HEADER.size, 0)
        if len(header) < _HEADER.size:
            return LogEnd(0, 0)
        return LogEnd(int.from_bytes(header[_SALTS]), _HEADER.unpack(header)[0])

    def close(self) -> None:
        """Close; after the connections."""
        os.close(self._descriptor)
