"""The embedded engine: one SQLite file in a data folder, and a log in front of its tables.

A small append is a frame of the log (`semel_runtime.journal.log`): one write, one fsync, and a look
whether the claim still holds. The tables follow behind it. Every other write is one transaction,
one fsync and one hop to SQLite's thread; nothing is ever left half done between two hops. Only
deletions, and commits that no caller waits for, have no fsync of their own. The epoch is checked
inside the transaction. Readers have read-only connections of their own, and read transactions of
one bounded statement, so that WAL checkpoints pass.
"""

from semel_runtime.journal.sqlite.journal import SqliteJournal
from semel_runtime.journal.sqlite.options import SqliteOptions

__all__ = ["SqliteJournal", "SqliteOptions"]
