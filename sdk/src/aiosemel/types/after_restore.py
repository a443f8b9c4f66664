"""The way on after a database, or the cluster, has gone back to a backup."""

from enum import StrEnum


class AfterRestore(StrEnum):
    """How a loop goes on where database and cluster do not fit one another."""

    STOP = "stop"
    """Raise DatabaseBehindError or DatabaseAheadError, which has the numbers."""
    REPROCESS = "reprocess"
    """Read again from the position in the database; without one, or where its records are deleted,
    from the beginning of the log. The handler's outputs are sent a second time."""
    SKIP = "skip"
    """Go on where the group's committed offset is, or, where the log ends before the position, at
    the end of the log. The database never gets what lies between."""
