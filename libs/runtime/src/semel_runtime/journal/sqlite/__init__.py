"""The embedded engine: one SQLite file in a data folder.

Every write is one statement in autocommit mode, so it is one transaction, one fsync and one hop to
the writer's thread; nothing is ever left half done between two hops. Only deletions, and commits
that no caller waits for, have no fsync of their own. The epoch is checked inside the statement.
Readers have read-only connections of their own, and read transactions of one bounded statement, so
that WAL checkpoints pass.
"""

from semel_runtime.journal.sqlite.journal import SqliteJournal
from semel_runtime.journal.sqlite.options import SqliteOptions

__all__ = ["SqliteJournal", "SqliteOptions"]
