"""Opening a journal's schema: which server it is, migrations, and whose the journal is.

Every error is a `JournalOpenError` whose sentence says what to do. Opening writes each
time, so that a server whose standbys do not answer is found before anything is served.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

import asyncpg
import structlog

from semel_runtime.journal.journal_errors import JournalOpenError
from semel_runtime.journal.postgres import open_errors
from semel_runtime.journal.postgres.connections import Connection
from semel_runtime.journal.postgres.journal_url import Place
from semel_runtime.journal.postgres.options import PostgresOptions
from semel_runtime.journal.postgres.schema import (
    MIGRATIONS,
    SCHEMA_VERSION,
    SINGLE_ROWS,
    TABLES,
)

log = structlog.get_logger(__name__)

T = TypeVar("T")

_PAUSE_S = 0.25
"""Between two attempts to open."""

NOTE_PREFIX = "note:"
"""Of the keys of notes."""

_STORE = "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = meta.value"
"""Sets a value that is set once and never changes; writes in any case."""

_VERSION = "schema_version"
_SERVER_VERSION_MIN = 13

_STATE = """
SELECT pg_is_in_recovery(), current_setting('server_version_num')::int / 10000,
    current_setting('fsync'), current_setting('synchronous_commit'),
    current_setting('synchronous_standby_names')
"""

_CLOSED_TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND NOT (
    has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
    AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')
)
ORDER BY relname
"""


async def insist(attempt: Callable[[], Awaitable[T]], place: Place, options: PostgresOptions) -> T:
    """Attempt to open until it succeeds, fails for good, or takes too long; tells why it waits.

    Raises JournalOpenError.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + options.open_timeout_ms / 1000
    told = ""
    while True:
        try:
            return await attempt()
        except Exception as error:
            refusal = open_errors.open_error(place, error)
            if not open_errors.may_pass(error) or loop.time() >= deadline:
                raise refusal from error
        if str(refusal) != told:
            told = str(refusal)
            log.warning("journal cannot be opened yet", error=told)
        await asyncio.sleep(_PAUSE_S)


async def check_server(connection: Connection, place: Place, options: PostgresOptions) -> None:
    """Refuse a standby, an old server, and one that does not replicate what it confirms."""
    rows = await connection.fetch(_STATE)
    standby, version, fsync, synchronous_commit, standby_names = rows[0]
    if standby:
        raise JournalOpenError(open_errors.standby_sentence(place))
    if version < _SERVER_VERSION_MIN:
        raise JournalOpenError(
            f"PostgreSQL {version} at {place.shown} is too old. Use version"
            f" {_SERVER_VERSION_MIN} or newer."
        )
    if synchronous_commit not in {"on", "remote_apply"}:
        problem = f"synchronous_commit is {synchronous_commit!r}, not 'on'"
    elif not standby_names.strip():
        problem = "synchronous_standby_names is empty"
    elif fsync != "on":
        problem = f"fsync is {fsync!r}, not 'on'"
    else:
        return
    if options.replication == "required":
        raise JournalOpenError(open_errors.replication_sentence(place, problem))
    log.warning("journal is not replicated", place=str(place), problem=problem)


async def prepare(
    connection: Connection, place: Place, *, service: str, cluster_id: str | None
) -> dict[str, str]:
    """Bring the schema to its current version, check whose it is, and return what is set."""
    async with connection.transaction():
        # Of several processes that make one schema at a time, the others find it made.
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", place.schema)
        version = await _version(connection, place)
        for script in MIGRATIONS[version:]:
            await connection.execute(script)
        await connection.execute(
            "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2",
            _VERSION,
            str(SCHEMA_VERSION),
        )
        return await _check_identity(connection, place, service=service, cluster_id=cluster_id)


async def _version(connection: Connection, place: Place) -> int:
    """Return the schema's version, 0 for a new one, which is made."""
    if not await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", place.schema):
        await connection.execute(f'CREATE SCHEMA "{place.schema}"')
    # Without it, the tables would seem not to be there.
    if not await connection.fetchval("SELECT has_schema_privilege($1, 'USAGE')", place.schema):
        why = f"permission denied for schema {place.schema}"
        raise JournalOpenError(open_errors.rights_sentence(place, why))
    tables = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace($1)"
    names = {row[0] for row in await connection.fetch(tables, place.schema)}
    if not names:
        return 0
    if not names.issuperset(TABLES[:3]):
        raise JournalOpenError(open_errors.foreign_sentence(place))
    await _check_rights(connection, place)
    try:
        stored = await connection.fetchval("SELECT value FROM meta WHERE key = $1", _VERSION)
    except asyncpg.UndefinedColumnError as error:
        raise JournalOpenError(open_errors.foreign_sentence(place)) from error
    if stored is None or not stored.isdecimal():
        what = f"its schema_version is {stored or 'gone'!r}"
        raise JournalOpenError(open_errors.incomplete_sentence(place, what))
    version = int(stored)
    if version > SCHEMA_VERSION:
        raise JournalOpenError(open_errors.newer_sentence(place, version, SCHEMA_VERSION))
    await _check_complete(connection, place, names)
    return version


async def _check_rights(connection: Connection, place: Place) -> None:
    """Refuse tables that cannot be written, before a write finds them."""
    for table in await connection.fetch(_CLOSED_TABLES, place.schema):
        why = f"permission denied for table {table[0]}"
        raise JournalOpenError(open_errors.rights_sentence(place, why))


async def _check_complete(connection: Connection, place: Place, names: Collection[str]) -> None:
    """Refuse a journal without all its parts: the rest would be read as a whole."""
    for table in TABLES:
        if table not in names:
            what = f"its table {table} is gone"
            raise JournalOpenError(open_errors.incomplete_sentence(place, what))
    for table in SINGLE_ROWS:
        if not await connection.fetchval(f"SELECT count(*) FROM {table}"):
            what = f"the row of its table {table} is gone"
            raise JournalOpenError(open_errors.incomplete_sentence(place, what))


async def _check_identity(
    connection: Connection, place: Place, *, service: str, cluster_id: str | None
) -> dict[str, str]:
    """Refuse the journal of another service or cluster; return what is set."""
    await connection.execute(_STORE, "service", service)
    if cluster_id is not None:
        await connection.execute(_STORE, "cluster_id", cluster_id)
    stored = {row[0]: row[1] for row in await connection.fetch("SELECT key, value FROM meta")}
    if stored["service"] != service:
        raise JournalOpenError(open_errors.service_sentence(place, stored["service"], service))
    if cluster_id is not None and stored["cluster_id"] != cluster_id:
        raise JournalOpenError(
            open_errors.cluster_sentence(place, stored["cluster_id"], cluster_id)
        )
    return stored
