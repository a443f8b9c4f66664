"""Opening a journal without knowing its engine."""

from pathlib import Path

from semel_runtime.journal.contract import Journal
from semel_runtime.journal.journal_errors import JournalOpenError
from semel_runtime.journal.postgres.journal_url import SCHEMES
from semel_runtime.journal.postgres.options import PostgresOptions
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions


def is_folder(location: str | Path) -> bool:
    """Whether a journal's location is a data folder, not a URL."""
    return "://" not in str(location)


async def open_journal(
    location: str | Path,
    *,
    service: str,
    cluster_id: str | None = None,
    options: SqliteOptions | None = None,
    postgres_options: PostgresOptions | None = None,
) -> Journal:
    """Open a service's journal in a data folder, made if need be, or at a URL of PostgreSQL.

    `service` and, once known, `cluster_id` are stored at the first time and checked from then on.
    Each engine has its own options. Raises JournalOpenError with a sentence that says what to do.
    """
    if is_folder(location):
        folder = Path(location)
        return await SqliteJournal.open(
            folder, service=service, cluster_id=cluster_id, options=options
        )
    url = str(location)
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        raise JournalOpenError(
            f"There is no engine for {scheme!r}. Give the path of a data folder, or"
            " postgresql://user:password@host:port/database."
        )
    from semel_runtime.journal.postgres.journal import (  # noqa: PLC0415 - loads the driver
        PostgresJournal,
    )

    return await PostgresJournal.open(
        url, service=service, cluster_id=cluster_id, options=postgres_options
    )
