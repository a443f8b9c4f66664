"""Opening a journal without knowing its engine."""

from pathlib import Path

from semel_runtime.journal.base import Journal
from semel_runtime.journal.errors import JournalOpenError
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions


async def open_journal(
    location: str | Path,
    *,
    service: str,
    cluster_id: str | None = None,
    options: SqliteOptions | None = None,
) -> Journal:
    """Open a service's journal: `location` is a data folder, made if need be.

    `service` and, once known, `cluster_id` are stored at the first time and checked from then on.
    Raises JournalOpenError with a sentence that says what to do.
    """
    scheme, separator, _ = str(location).partition("://")
    if separator:
        raise JournalOpenError(
            f"There is no engine for {scheme!r}. Give the path of a data folder instead."
        )
    folder = Path(location)
    return await SqliteJournal.open(folder, service=service, cluster_id=cluster_id, options=options)
