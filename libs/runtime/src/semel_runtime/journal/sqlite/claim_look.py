"""The look whether a claim still holds, after a write and its sync, and before it is acknowledged.

Another process claims a journal by a commit in SQLite, and reads the log only after that. So a
frame that was synced before a look that finds the claim in place is in what that process reads.
"""

import sqlite3
from pathlib import Path
from urllib.parse import quote

from semel_runtime.journal.journal_errors import JournalFencedError, JournalUnknownError

LOOK = "SELECT epoch, (SELECT value FROM meta WHERE key = 'log') FROM owner"


class ClaimLook:
    """A connection that reads, used by one thread at a time."""

    def __init__(self, file: Path) -> None:
        uri = f"file:{quote(str(file))}?mode=ro"
        self._connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False
        )

    def check(self, epoch: int, log: str) -> None:
        """Raise what `check_claim` does, or sqlite3.Error."""
        (found,) = self._connection.execute(LOOK).fetchall()
        check_claim(found, epoch, log)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def check_claim(found: sqlite3.Row, epoch: int, log: str) -> None:
    """Raise JournalFencedError, or JournalUnknownError, if the journal has another owner."""
    stored_epoch, stored_log = found
    if stored_epoch != epoch:
        raise JournalFencedError(claim_epoch=epoch, stored_epoch=stored_epoch)
    if stored_log != log:
        raise JournalUnknownError(
            "another handle has claimed the journal with the token of this one"
        )
