"""The connections of a journal: how they are made, and the ones that read.

All of them go to the primary: a standby may lack acknowledged commits.
"""

import socket
from asyncio import timeout
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from semel_runtime.journal.journal_errors import JournalCorruptError, JournalError
from semel_runtime.journal.postgres.journal_url import Place
from semel_runtime.journal.postgres.options import PostgresOptions

Value: TypeAlias = int | str | bytes | Sequence[int] | Sequence[bytes] | None

Row: TypeAlias = asyncpg.Record
Connection: TypeAlias = "asyncpg.Connection[Row]"

_CLOSE_TIMEOUT_S = 5.0

_KEEPALIVE_IDLE_S = 5
_KEEPALIVE_INTERVAL_S = 5
_KEEPALIVE_COUNT = 3
"""Probes without an answer after which a silent peer counts as gone: 20 seconds in all."""

# Other time-outs of the server's own that would end a session; older servers do not know them.
_NO_TIMEOUTS = """
SELECT set_config(name, '0', false) FROM pg_settings
WHERE name IN ('idle_session_timeout', 'transaction_timeout')
"""


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
        # What a process that vanished holds locked is free again before its successor gives up.
        "tcp_keepalives_idle": str(_KEEPALIVE_IDLE_S),
        "tcp_keepalives_interval": str(_KEEPALIVE_INTERVAL_S),
        "tcp_keepalives_count": str(_KEEPALIVE_COUNT),
        # Every query walks an index, whatever the statistics say of a table that has just grown.
        "enable_seqscan": "off",
        "jit": "off",
    }


async def connect(place: Place, options: PostgresOptions) -> Connection:
    """Make a connection for writing, which notices a server that vanishes.

    Raises what asyncpg raises.
    """
    connection = await asyncpg.connect(
        place.dsn,
        timeout=options.connect_timeout_ms / 1000,
        target_session_attrs=SessionAttribute.primary,
        server_settings=dict(_session(place)),
    )
    try:
        _keep_alive(connection)
        await connection.execute(_NO_TIMEOUTS, timeout=options.connect_timeout_ms / 1000)
    except BaseException:
        connection.terminate()
        raise
    return connection


def _keep_alive(connection: Connection) -> None:
    """Let the kernel ask whether the server is still there while nothing is written."""
    transport = connection._transport  # type: ignore[attr-defined]  # noqa: SLF001  # no other way
    peer = transport.get_extra_info("socket")
    if peer.family == socket.AF_UNIX:
        return
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_S)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_COUNT)


async def _leave_as_it_is(connection: object) -> None:
    """Do nothing after a use: readers change no connection, and a reset is a round trip."""


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
        """Close all connections; end the busy ones after a while."""
        try:
            async with timeout(_CLOSE_TIMEOUT_S):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()
