"""The connections of a journal: how they are made, and the ones that read.

All of them go to the primary: what a standby has may be older than what was acknowledged.
"""

from asyncio import timeout
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from semel_runtime.journal.errors import JournalCorruptError, JournalError
from semel_runtime.journal.postgres.options import PostgresOptions
from semel_runtime.journal.postgres.place import Place

Value: TypeAlias = int | str | bytes | Sequence[int] | Sequence[bytes] | None

Row: TypeAlias = asyncpg.Record
Connection: TypeAlias = "asyncpg.Connection[Row]"

_CLOSE_TIMEOUT_S = 5.0


def _session(place: Place) -> Mapping[str, str]:
    return {
        "application_name": f"semel {place.schema}",
        "search_path": place.schema,
        # A commit is over when a standby has it on its disk, whatever the server's default is.
        "synchronous_commit": "on",
        # All that comes is a warning, and so a reason to distrust a write.
        "client_min_messages": "warning",
        # The server must not cancel a write: a cancelled wait for a standby counts as a commit.
        "statement_timeout": "0",
        "lock_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        # Every query walks an index, whatever the statistics say of a table that has just grown.
        "enable_seqscan": "off",
        "jit": "off",
    }


async def connect(place: Place, options: PostgresOptions) -> Connection:
    """Make a connection for writing. Raises what asyncpg raises."""
    return await asyncpg.connect(
        place.dsn,
        timeout=options.connect_timeout_ms / 1000,
        target_session_attrs=SessionAttribute.primary,
        server_settings=dict(_session(place)),
    )


async def _leave_as_it_is(connection: object) -> None:
    """Do nothing after a use: nobody changes a connection that reads, and a reset is a trip."""


class Readers:
    """A few connections that read."""

    def __init__(self, pool: "asyncpg.Pool[Row]") -> None:
        self._pool = pool

    @classmethod
    async def open(cls, place: Place, options: PostgresOptions) -> "Readers":
        """Connect. Raises what asyncpg raises."""
        pool = asyncpg.create_pool(
            place.dsn,
            min_size=0,  # A pool that keeps some open logs tracebacks while the server is away.
            max_size=options.readers_max,
            timeout=options.connect_timeout_ms / 1000,
            command_timeout=options.read_timeout_ms / 1000,
            reset=_leave_as_it_is,
            target_session_attrs=SessionAttribute.primary,
            server_settings={**_session(place), "default_transaction_read_only": "on"},
        )
        await pool
        return cls(pool)

    async def fetch(self, statement: str, *parameters: Value) -> Sequence[Row]:
        """Run one bounded query. Raises JournalCorruptError, JournalError."""
        try:
            return await self._pool.fetch(statement, *parameters)
        except (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError) as error:
            raise JournalCorruptError(f"the database is damaged: {error}") from error
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            raise JournalError(f"reading failed: {type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Close all; those that are busy after a while are ended."""
        try:
            async with timeout(_CLOSE_TIMEOUT_S):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()
