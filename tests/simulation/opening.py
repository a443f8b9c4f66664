"""Opening a journal on a simulated disk, as `SqliteJournal.open` opens one on a real disk."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import cast

import aiosqlite

from semel_runtime.journal import JournalError, StoredBatch
from semel_runtime.journal.chunks import checksum, pack_records
from semel_runtime.journal.log.frames import LoggedAppend
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.journal.sqlite.appender import Appender
from semel_runtime.journal.sqlite.connections import Readers, Writer
from semel_runtime.journal.sqlite.folder import JOURNAL_FILE
from semel_runtime.journal.sqlite.journal_end import WITNESSED, WitnessedLog, compare_end
from semel_runtime.journal.sqlite.opening import STORE, check_identity, prepare
from semel_runtime.journal.sqlite.payloads.payload_space import PayloadSpace
from simulation.disk import Observer, SimulatedVolume
from simulation.files import SimulatedPath
from simulation.tables import Connection, Watcher

_LOG_BYTES = (2 << 10, 8 << 10, 96 << 10)
"""Of both files: small, so that they are written again and again."""
_LOGGED_BYTES_MAX = (300, 1_500, 128 << 10)
"""Small, so that some appends go straight into the tables."""
_PAYLOAD_FILE_BYTES = (20_000, 60_000)
"""Small, so that files become full and are removed."""


class ObservedJournal(SqliteJournal):
    """A journal that tells an observer of its durable records, and their places."""

    volume: SimulatedVolume
    observer: Observer

    async def append(
        self, at: int, records: Sequence[bytes], batches: Sequence[StoredBatch] = ()
    ) -> float:
        """See `Journal.append`."""
        seconds = await super().append(at, records, batches)
        if records:
            data = pack_records(records)
            append = LoggedAppend(
                base_offset=at,
                record_count=len(records),
                crc32c=checksum(at, len(records), data),
                data=data,
                batches=tuple(batches),
            )
            self.volume.acknowledged(self.observer, append)
        return seconds


class _Watcher:
    """Tells the volume and the observer of a handle's statements."""

    def __init__(self, volume: SimulatedVolume, observer: Observer) -> None:
        self._volume = volume
        self._observer = observer

    def logged(self, text: str) -> None:
        """See ``Watcher``."""
        self._volume.logged(self._observer, text)

    def stored(self, text: str, appends: Sequence[LoggedAppend]) -> None:
        """See ``Watcher``."""
        self._volume.stored(text, appends)

    def rewriting(self, partition: int) -> Callable[[], None]:
        """See ``Watcher``."""
        before = self._volume.batches_of(partition)

        def after() -> None:
            now = self._volume.batches_of(partition)
            self._observer.rewritten(partition, before, now)

        return after


class _Space:
    """Stands for ``DiskSpace``."""

    folder = "/simulated"

    def __init__(self, volume: SimulatedVolume) -> None:
        self._volume = volume

    def free_bytes(self) -> int:
        """See ``DiskSpace``."""
        return self._volume.free_bytes


async def open_journal(
    volume: SimulatedVolume, *, service: str, observer: Observer, random: Random
) -> ObservedJournal:
    """Open the journal of a volume. Raises JournalOpenError, JournalError."""
    async with AsyncExitStack() as resources:
        try:
            return await _open(volume, service, observer, random, resources)
        except (sqlite3.Error, OSError) as error:
            raise JournalError(f"opening a journal failed: {error}") from error
    raise AssertionError("nothing is left to do")


async def _open(
    volume: SimulatedVolume,
    service: str,
    observer: Observer,
    random: Random,
    resources: AsyncExitStack,
) -> ObservedJournal:
    options = SqliteOptions(
        log_bytes=random.choice(_LOG_BYTES), logged_bytes_max=random.choice(_LOGGED_BYTES_MAX)
    )
    folder = cast(Path, SimulatedPath(volume.folder))
    file = folder / JOURNAL_FILE
    compare_end(folder, volume.tables.found_end())
    log = WitnessedLog(folder)
    resources.callback(log.close)
    connection = _connect(volume, log, _Watcher(volume, observer))
    resources.push_async_callback(connection.close)
    await prepare(connection, file, options)
    stored = await check_identity(connection, file, service=service, cluster_id=None)
    log.open()
    await connection.execute_fetchall(STORE, (WITNESSED, ""))
    readers = Readers(file, [_connect(volume, log) for _ in range(options.readers)])
    resources.push_async_callback(readers.close)
    writer = Writer(
        connection, log, log_file=file.parent / "journal.db-wal", log_bytes_max=options.wal_bytes
    )
    resources.push_async_callback(writer.close)
    space = PayloadSpace(folder, writer, readers, file_bytes=random.choice(_PAYLOAD_FILE_BYTES))
    appender = Appender(file, writer, readers, log, space, options)
    resources.push_async_callback(appender.close)
    journal = ObservedJournal(
        writer,
        readers,
        appender,
        space,
        resources.pop_all(),
        file=file,
        stored=stored,
        options=options,
    )
    journal.volume, journal.observer = volume, observer
    journal._space = _Space(volume)  # type: ignore[assignment]  # stands for one
    return journal


def _connect(
    volume: SimulatedVolume, log: WitnessedLog, watcher: Watcher | None = None
) -> aiosqlite.Connection:
    return cast(aiosqlite.Connection, Connection(volume.tables, log, watcher))
