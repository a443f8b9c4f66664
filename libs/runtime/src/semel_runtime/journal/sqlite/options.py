"""What can be set on the SQLite engine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteOptions:
    """Limits of one journal file."""

    disk_reserve_bytes: int = 64 * 1024 * 1024
    """Free space that only claims, markers, deletions and snapshots may use."""
    append_bytes_max: int = 64 * 1024 * 1024
    """Bytes in one append, or in one piece of a snapshot."""
    append_batches_max: int = 4_096
    """Record batches in one append; SQLite takes 32,766 parameters in a statement, 8 for each."""
    readers: int = 2
    """Read-only connections, each with a thread of its own."""
    wal_bytes: int = 16 * 1024 * 1024
    """Bytes in the write-ahead log at which its content moves to the database.

    While readers are always busy, the log restarts only after a wait for them, once it is twice as
    long."""
    log_bytes: int = 4 * 1024 * 1024
    """Bytes in the log in front of the tables: of both its files, which are allocated at once."""
    logged_bytes_max: int = 128 * 1024
    """Bytes in an append up to which it goes through the log. Of a larger one, the payloads go to a
    file of their own, and the rest to the tables at once."""
    payload_file_bytes: int = 64 * 1024 * 1024
    """As long as a file of payloads becomes, before the next one begins."""
    exclusive: bool = True
    """Whether a second process on this machine is refused at once, by a lock on a file. Without it,
    as on file systems without locks, only the claim epoch protects."""
    end_checked: bool = True
    """Whether a journal that ends before its witness says is refused. Without it, as for
    `semel recover`, nothing is written to the witness either."""
