"""The journal in SQLite."""

import asyncio
import sqlite3
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from operator import itemgetter
from pathlib import Path
from typing import Self

from semel_runtime.journal.chunks import check_size, checksum, pack_records, unpack_records
from semel_runtime.journal.contract import (
    Claim,
    DiskShortage,
    Entry,
    Piece,
    Reserve,
    StoredBatch,
    shortage_of,
)
from semel_runtime.journal.journal_errors import (
    JournalCorruptError,
    JournalFencedError,
    JournalOpenError,
    JournalUnknownError,
)
from semel_runtime.journal.log.frames import LoggedAppend
from semel_runtime.journal.sqlite.appender import Appender
from semel_runtime.journal.sqlite.batches import SqliteBatchStore
from semel_runtime.journal.sqlite.connections import Readers, Writer, open_writer
from semel_runtime.journal.sqlite.folder import JOURNAL_FILE, folder_sentence, hold_folder
from semel_runtime.journal.sqlite.journal_end import WITNESSED, WitnessedLog, check_end
from semel_runtime.journal.sqlite.opening import (
    NOTE,
    NOTE_PREFIX,
    STORE,
    check_identity,
    cluster_sentence,
    file_sentence,
    prepare,
)
from semel_runtime.journal.sqlite.options import SqliteOptions
from semel_runtime.journal.sqlite.payloads.payload_space import PayloadSpace
from semel_runtime.journal.sqlite.snapshots import SqliteSnapshots
from semel_runtime.journal.sqlite.space import DiskSpace
from semel_runtime.journal.sqlite.statements import DAMAGED
from semel_runtime.journal.sqlite.vacuum import Vacuum

_CLAIM = """
UPDATE owner SET epoch = coalesce(?1, epoch + 1), token = ?2
WHERE (?1 IS NULL AND token <> ?2) OR ?1 > epoch
"""

# Walks from chunk to chunk, each beginning where the one before ends, until it has enough bytes. It
# finds them in order; to say so (ORDER BY) would carry all data through a sorter, and a file.
_READ = """
WITH RECURSIVE span (base_offset, next_offset, total_bytes, number) AS (
    SELECT * FROM (
        SELECT base_offset, base_offset + record_count, length(data), 1 FROM chunks
        WHERE base_offset <= ?1 ORDER BY base_offset DESC LIMIT 1
    )
    UNION ALL
    SELECT later.base_offset, later.base_offset + record_count, total_bytes + length(data),
        number + 1
    FROM span CROSS JOIN chunks AS later ON later.base_offset = span.next_offset
    WHERE total_bytes < ?2
)
SELECT chunks.base_offset, record_count, crc32c, data
FROM span CROSS JOIN chunks ON chunks.base_offset = span.base_offset
WHERE total_bytes <= ?2 OR number = 1
"""


class SqliteJournal:
    """A `Journal` in a data folder. Made by `open`."""

    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        appender: Appender,
        space: PayloadSpace,
        resources: AsyncExitStack,
        *,
        file: Path,
        stored: dict[str, str],
        options: SqliteOptions,
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._appender = appender
        self._resources = resources
        self._file = file
        self._cluster_id = stored.get("cluster_id")
        self._stored = stored
        self._options = options
        self._space = DiskSpace(file.parent)
        vacuum = Vacuum(writer)
        self._snapshots = SqliteSnapshots(
            writer, readers, appender, vacuum, piece_bytes_max=options.append_bytes_max
        )
        self._batches = SqliteBatchStore(writer, readers, appender, vacuum, space, file=file)

    @classmethod
    async def open(
        cls,
        folder: Path,
        *,
        service: str,
        cluster_id: str | None = None,
        options: SqliteOptions | None = None,
    ) -> Self:
        """Open the journal in `folder`, which is made if need be.

        Raises JournalOpenError (JournalInUseError) with a sentence that says what to do: for the
        folder of another service or cluster, a newer schema, a folder in use, not writable or full,
        a damaged file, and one that ends before its witness says.
        """
        options = options or SqliteOptions()
        file = folder / JOURNAL_FILE
        async with AsyncExitStack() as resources:
            lock = await asyncio.to_thread(hold_folder, folder, exclusive=options.exclusive)
            resources.callback(lock.release)
            if options.end_checked:
                await asyncio.to_thread(_check_end, folder)
            log = WitnessedLog(folder)
            resources.push_async_callback(asyncio.to_thread, log.close)
            connection = await open_writer(file, log)
            resources.push_async_callback(connection.close)
            try:
                await prepare(connection, file, options)
                stored = await check_identity(
                    connection, file, service=service, cluster_id=cluster_id
                )
                if options.end_checked:
                    await asyncio.to_thread(_open_witness, folder, log)
                    await connection.execute_fetchall(STORE, (WITNESSED, ""))
            except DAMAGED as error:
                raise JournalOpenError(file_sentence(file, error)) from error
            readers = await Readers.open(file, options.readers)
            resources.push_async_callback(readers.close)
            writer = Writer(
                connection,
                log,
                log_file=folder / f"{JOURNAL_FILE}-wal",
                log_bytes_max=2 * options.wal_bytes,
            )
            resources.push_async_callback(writer.close)
            space = PayloadSpace(folder, writer, readers, file_bytes=options.payload_file_bytes)
            appender = Appender(file, writer, readers, log, space, options)
            resources.push_async_callback(appender.close)
            return cls(
                writer,
                readers,
                appender,
                space,
                resources.pop_all(),
                file=file,
                stored=stored,
                options=options,
            )

    @property
    def batches(self) -> SqliteBatchStore:
        """See `Journal.batches`."""
        return self._batches

    @property
    def cluster_id(self) -> str | None:
        """See `Journal.cluster_id`."""
        return self._cluster_id

    async def set_cluster_id(self, cluster_id: str) -> None:
        """See `Journal.set_cluster_id`."""
        if self._cluster_id is None:
            await self._writer.check_epoch()
            await self._writer.execute(STORE, ("cluster_id", cluster_id))
            rows = await self._writer.execute("SELECT value FROM meta WHERE key = 'cluster_id'")
            self._cluster_id = str(rows[0][0])
        if self._cluster_id != cluster_id:
            raise JournalOpenError(cluster_sentence(self._file, self._cluster_id, cluster_id))

    def note(self, name: str) -> str:
        """See `Journal.note`."""
        return self._stored.get(NOTE_PREFIX + name, "")

    async def set_note(self, name: str, text: str) -> None:
        """See `Journal.set_note`."""
        await self._writer.check_epoch()
        await self._writer.execute(NOTE, (NOTE_PREFIX + name, text))
        self._stored[NOTE_PREFIX + name] = text

    async def claim(self, token: str, *, epoch: int | None = None) -> Claim:
        """See `Journal.claim`."""
        await self._writer.execute(_CLAIM, (epoch, token))
        rows = await self._writer.execute("SELECT epoch, token, first_offset FROM positions")
        stored_epoch, stored_token, first_offset = rows[0]
        if stored_token != token or epoch not in (None, stored_epoch):
            raise JournalFencedError(claim_epoch=epoch or 0, stored_epoch=stored_epoch)
        self._writer.own(stored_epoch)
        next_offset = await self._appender.begin(stored_epoch)
        await self._writer.witness_claim(next_offset=next_offset)
        return Claim(epoch=stored_epoch, first_offset=first_offset, next_offset=next_offset)

    async def append(
        self, at: int, records: Sequence[bytes], batches: Sequence[StoredBatch] = ()
    ) -> float:
        """See `Journal.append`."""
        assert records or not batches, "batches never ride without a record"
        if not records:
            await self._appender.verify(at)
            return 0.0
        data = pack_records(records)
        check_size(len(data), batches, size_bytes_max=self._options.append_bytes_max)
        assert len(batches) <= self._options.append_batches_max, "too many batches in one append"
        crc32c = checksum(at, len(records), data)
        return await self._appender.append(
            LoggedAppend(
                base_offset=at,
                record_count=len(records),
                crc32c=crc32c,
                data=data,
                batches=tuple(batches),
            )
        )

    async def read(self, start: int, *, max_bytes: int) -> AsyncIterator[Piece]:
        """See `Journal.read`."""
        await self._appender.caught_up()
        positions = await self._readers.fetch("SELECT next_offset FROM positions", ())
        end = int(positions[0][0])
        at = start
        while at < end:
            entries = await self._read_piece(at, max_bytes)
            if not entries:
                raise JournalCorruptError(f"records from {at} on are missing; the end is {end}")
            yield entries
            at = entries[-1][0] + 1

    async def _read_piece(self, at: int, max_bytes: int) -> Sequence[Entry]:
        """Read some records from `at` on; none if the one at `at` is missing."""
        rows = await self._readers.fetch(_READ, (at, max_bytes))
        chunks = sorted(rows, key=itemgetter(0))
        entries = [entry for row in chunks for entry in unpack_records(*row)]
        skip = at - entries[0][0] if entries else 0
        return entries[skip:]

    def read_snapshot(self) -> AsyncIterator[Piece]:
        """See `Journal.read_snapshot`."""
        return self._snapshots.read()

    async def replace(self, upto: int, snapshot: AsyncIterable[Piece]) -> None:
        """See `Journal.replace`."""
        await self._snapshots.replace(upto, snapshot)

    def on_death(self, listener: Callable[[JournalUnknownError], None]) -> None:
        """See `Journal.on_death`: the tables may fail behind the log, or a note beside it."""
        self._writer.on_death(listener)

    def free_bytes(self) -> int:
        """See `Journal.free_bytes`."""
        return self._space.free_bytes()

    def shortage(
        self, queued_bytes: int = 0, may_use: Reserve = Reserve.NONE
    ) -> DiskShortage | None:
        """See `Journal.shortage`."""
        return shortage_of(
            str(self._space.folder),
            free_bytes=self._space.free_bytes(),
            queued_bytes=queued_bytes + self._appender.waiting_bytes,
            reserve_bytes=self._options.disk_reserve_bytes,
            may_use=may_use,
        )

    async def close(self) -> None:
        """See `Journal.close`."""
        await self._resources.aclose()

    async def __aenter__(self) -> Self:
        """Return the journal itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()


def _check_end(folder: Path) -> None:
    try:
        check_end(folder)
    except sqlite3.Error as error:
        raise JournalOpenError(file_sentence(folder / JOURNAL_FILE, error)) from error
    except OSError as error:
        raise JournalOpenError(folder_sentence(folder, error)) from error


def _open_witness(folder: Path, log: WitnessedLog) -> None:
    try:
        log.open()
    except OSError as error:
        raise JournalOpenError(folder_sentence(folder, error)) from error
