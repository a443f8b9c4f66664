"""The check that each file of payloads is there, and long enough for the places in the table."""

import sqlite3
from pathlib import Path

from semel_runtime.journal.sqlite.payloads.payload_files import path_of
from semel_runtime.journal.sqlite.schema import PAYLOADS_VERSION

_VERSION = "SELECT user_version FROM pragma_user_version"
_ENDS = """
SELECT payload_file, max(payload_position + payload_bytes) FROM batches
WHERE payload_file IS NOT NULL GROUP BY payload_file
"""


def lost_payloads(connection: sqlite3.Connection, folder: Path) -> str:
    """Return which file is missing or too short, and how much; empty: none is.

    Raises sqlite3.DatabaseError, OSError.
    """
    (version,) = connection.execute(_VERSION).fetchone()
    if version < PAYLOADS_VERSION:
        return ""
    for number, end in connection.execute(_ENDS):
        path = path_of(folder, number)
        try:
            size_bytes = path.stat().st_size
        except FileNotFoundError:
            return f"{path} is missing, but it has payloads of records"
        if size_bytes < end:
            return f"{path} has {size_bytes} bytes, but there are payloads up to byte {end} of it"
    return ""
