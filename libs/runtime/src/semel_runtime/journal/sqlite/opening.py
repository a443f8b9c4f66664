"""Opening a journal file: pragmas, migrations, and the check of its owner.

Every error is a `JournalOpenError` whose sentence says what to do.
"""

import shutil
import sqlite3
from pathlib import Path

import aiosqlite

from semel_runtime.journal.journal_errors import JournalOpenError
from semel_runtime.journal.sqlite.options import SqliteOptions
from semel_runtime.journal.sqlite.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    SCHEMA_VERSION,
)

STORE = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING"
"""Sets a value that is set once and never changes."""

NOTE = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
NOTE_PREFIX = "note:"
"""Of the keys of notes."""

PAGE_BYTES = 16_384
"""Of a new file; one that is there keeps its own.

SQLite makes four system calls for each page on its way through the log to the database. Four times
as much in a page costs a small append nothing that can be measured: the disk takes as long.
"""
_CACHE_KIB = 8_192
"""An append of several megabytes fits in, so no page is written out before its end."""

_PRAGMAS = (
    f"page_size = {PAGE_BYTES}",  # Like the next: only for a new file, and before journal_mode.
    "auto_vacuum = INCREMENTAL",
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = OFF",
    "secure_delete = OFF",
    "temp_store = MEMORY",
    f"cache_size = -{_CACHE_KIB}",
)

_SQLITE_MIN = (3, 37)  # STRICT tables

_FOUND = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
FROM pragma_application_id, pragma_user_version
"""
"""One statement, so one state of the file: without locks, two first starts may meet."""


async def prepare(connection: aiosqlite.Connection, file: Path, options: SqliteOptions) -> None:
    """Bring the file to the current schema and set the connection up for durable writes."""
    if aiosqlite.sqlite_version_info < _SQLITE_MIN:
        raise JournalOpenError(
            f"SQLite {aiosqlite.sqlite_version} is too old. Use a Python with SQLite 3.37 or newer."
        )
    version = await _version(connection, file)
    for pragma in _PRAGMAS:
        await connection.execute_fetchall(f"PRAGMA {pragma}")
    await _limit_log(connection, options)
    await _migrate(connection, version)


async def _limit_log(connection: aiosqlite.Connection, options: SqliteOptions) -> None:
    pages = options.wal_bytes // await _pragma(connection, "page_size")
    await connection.execute_fetchall(f"PRAGMA wal_autocheckpoint = {pages}")
    await connection.execute_fetchall(f"PRAGMA journal_size_limit = {options.wal_bytes}")


async def _version(connection: aiosqlite.Connection, file: Path) -> int:
    """Return the file's schema version, 0 for a new one.

    A file may have nothing yet: a first start may have ended before its first table.
    """
    ((application_id, version, tables),) = await connection.execute_fetchall(_FOUND)
    if application_id != APPLICATION_ID and (application_id, tables) != (0, 0):
        raise JournalOpenError(
            f"{file} is not a journal of Semel. Choose another folder, or move that file away."
        )
    if version > SCHEMA_VERSION:
        raise JournalOpenError(
            f"{file} has schema version {version}, this program knows {SCHEMA_VERSION}: it was "
            "written by a newer version of Semel. Start that version again, or a newer one."
        )
    return int(version)


async def _migrate(connection: aiosqlite.Connection, version: int) -> None:
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        try:
            await connection.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID};"
                f"{script} PRAGMA user_version = {number}; COMMIT;"
            )
        except sqlite3.OperationalError:
            await connection.rollback()
            if await _pragma(connection, "user_version") < number:
                raise
            # Another start has done this step since: without locks, two first starts may meet.
    if version < SCHEMA_VERSION:
        # A file whose log is lost can so be told from one that is no journal.
        await connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")


async def check_identity(
    connection: aiosqlite.Connection, file: Path, *, service: str, cluster_id: str | None
) -> dict[str, str]:
    """Refuse the file of another service or cluster; return what is set."""
    await connection.execute_fetchall(STORE, ("service", service))
    stored = await _fetch_meta(connection)
    if stored["service"] != service:
        raise JournalOpenError(
            f"{file} belongs to the service {stored['service']!r}, not {service!r}. "
            "Give each service a data folder of its own."
        )
    if cluster_id is not None:
        await connection.execute_fetchall(STORE, ("cluster_id", cluster_id))
        stored = await _fetch_meta(connection)
        if stored["cluster_id"] != cluster_id:
            raise JournalOpenError(cluster_sentence(file, stored["cluster_id"], cluster_id))
    return stored


async def _fetch_meta(connection: aiosqlite.Connection) -> dict[str, str]:
    """Return all that is set."""
    rows = await connection.execute_fetchall("SELECT * FROM meta")
    return {str(row[0]): str(row[1]) for row in rows}


async def _pragma(connection: aiosqlite.Connection, name: str) -> int:
    rows = list(await connection.execute_fetchall(f"PRAGMA {name}"))
    return int(rows[0][0])


def cluster_sentence(file: Path, stored: str, given: str) -> str:
    """Say what to do about a file of another cluster."""
    return (
        f"{file} belongs to the cluster {stored!r}, not {given!r}. "
        "Start it with that cluster's addresses, or choose an empty folder."
    )


def cause(file: Path, error: Exception) -> str:
    """Return the message of an error of SQLite's.

    SQLite calls it a disk I/O error if the index of its log cannot grow on a full disk.
    """
    message = str(error)
    is_full = message == "disk I/O error" and not shutil.disk_usage(file.parent).free
    return "database or disk is full" if is_full else message


def file_sentence(file: Path, error: Exception) -> str:
    """Say what to do about an error of SQLite's at start."""
    match cause(file, error):
        case "database or disk is full":
            return f"The disk of {file} is full. Free some space, then start again."
        case "attempt to write a readonly database" | "unable to open database file":
            return f"{file} cannot be written. Give this user the right to write it."
        case "database is locked":
            return f"{file} is in use by another process. Stop that process first."
        case "file is not a database" | "database disk image is malformed":
            return (
                f"{file} is damaged, or not a database at all. "
                "Restore it from a backup, or choose another folder."
            )
        case message:
            return f"{file} cannot be opened: {message}."
