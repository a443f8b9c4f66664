"""Engines to run the journals' conformance tests on, and what all journal tests need."""

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Protocol, TypeAlias

import asyncpg

from semel_runtime.journal import Entry, Journal, Piece, StoredBatch
from semel_runtime.journal.postgres.journal import PostgresJournal
from semel_runtime.journal.postgres.options import PostgresOptions
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.postgres import PostgresServer
from semel_runtime.testing.volume import MemoryVolume

APPEND_BYTES_MAX = 1024 * 1024
WAL_BYTES = 4 * 1024 * 1024
PLENTY = 1 << 30
TOKEN = "token"
_PATIENCE_MS = 600_000

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
"""A connection of an operator's, beside those of journals."""

_numbers = count()


class Engine(Protocol):
    """A place where a journal lies; it can be opened again and again, even twice at a time."""

    async def open(self, *, service: str = "test", cluster_id: str | None = None) -> Journal: ...

    async def close(self) -> None: ...


class SqliteEngine:
    """A data folder, without the lock that would keep a twin out."""

    def __init__(self, folder: Path, *, payload_file_bytes: int = 1 << 26) -> None:
        self.folder = folder
        self._payload_file_bytes = payload_file_bytes
        self._opened: list[Journal] = []

    async def open(self, *, service: str = "test", cluster_id: str | None = None) -> Journal:
        options = SqliteOptions(
            exclusive=False,
            append_bytes_max=APPEND_BYTES_MAX,
            disk_reserve_bytes=0,
            wal_bytes=WAL_BYTES,
            payload_file_bytes=self._payload_file_bytes,
        )
        journal = await SqliteJournal.open(
            self.folder, service=service, cluster_id=cluster_id, options=options
        )
        self._opened.append(journal)
        return journal

    async def close(self) -> None:
        for journal in self._opened:
            await journal.close()


class PostgresEngine:
    """A schema of its own, on a server that others use too.

    What hangs is ended by pytest's time-out: here none of the engine's own decides, whatever else
    the machine has to do.
    """

    def __init__(self, server: PostgresServer) -> None:
        self.schema = f"test_{next(_numbers)}"
        self.url = f"{server.url()}?schema={self.schema}"
        self._opened: list[Journal] = []

    async def open(
        self, *, service: str = "test", cluster_id: str | None = None
    ) -> PostgresJournal:
        journal = await PostgresJournal.open(
            self.url,
            service=service,
            cluster_id=cluster_id,
            options=PostgresOptions(
                append_bytes_max=APPEND_BYTES_MAX,
                connect_timeout_ms=_PATIENCE_MS,
                write_timeout_ms=_PATIENCE_MS,
                read_timeout_ms=_PATIENCE_MS,
            ),
        )
        self._opened.append(journal)
        return journal

    async def close(self) -> None:
        for journal in self._opened:
            await journal.close()


class MemoryEngine:
    """A volume in memory."""

    def __init__(self) -> None:
        self.volume = MemoryVolume()

    async def open(self, *, service: str = "test", cluster_id: str | None = None) -> Journal:
        return MemoryJournal(
            self.volume,
            service=service,
            cluster_id=cluster_id,
            append_bytes_max=APPEND_BYTES_MAX,
        )

    async def close(self) -> None:
        pass


def batch(
    partition: int = 1,
    base_offset: int = 0,
    record_count: int = 10,
    *,
    timestamp_ms: int = 0,
    payload: bytes = b"payload",
) -> StoredBatch:
    return StoredBatch(
        partition=partition,
        base_offset=base_offset,
        record_count=record_count,
        max_timestamp_ms=timestamp_ms,
        header=b"header",
        payload=payload,
    )


async def claimed(engine: Engine, token: str = TOKEN) -> Journal:
    """Open a journal and claim it."""
    journal = await engine.open()
    await journal.claim(token)
    return journal


async def entries_of(pieces: AsyncIterator[Piece]) -> list[Entry]:
    """Read to the end."""
    return [entry async for piece in pieces for entry in piece]


async def read_all(journal: Journal, start: int = 0, max_bytes: int = PLENTY) -> list[bytes]:
    """Read the records from `start` on, and check that their offsets are without gaps."""
    entries = await entries_of(journal.read(start, max_bytes=max_bytes))
    assert [offset for offset, _ in entries] == list(range(start, start + len(entries)))
    return [record for _, record in entries]


async def pieces_of(*pieces: Iterable[Entry]) -> AsyncIterator[Sequence[Entry]]:
    """Give pieces of a snapshot."""
    for piece in pieces:
        yield list(piece)


async def offsets_read(
    journal: Journal, offset: int, *, max_bytes: int = PLENTY, upto: int = PLENTY
) -> list[int]:
    """Read batches of partition 1 and answer their base offsets."""
    found = await journal.batches.read(1, offset, max_bytes=max_bytes, upto=upto)
    return [one.base_offset for one in found]
