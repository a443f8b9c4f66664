"""The journal in PostgreSQL."""

import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Self

from semel_runtime.journal.chunks import check_size, checksum, pack_records, unpack_records
from semel_runtime.journal.contract import Claim, Entry, Piece, Reserve, StoredBatch
from semel_runtime.journal.journal_errors import (
    JournalCorruptError,
    JournalFencedError,
    JournalOpenError,
    JournalUnknownError,
)
from semel_runtime.journal.postgres.batches import PostgresBatchStore
from semel_runtime.journal.postgres.connections import Connection, Readers, connect
from semel_runtime.journal.postgres.journal_url import Place, place_of
from semel_runtime.journal.postgres.open_errors import cluster_sentence, replication_sentence
from semel_runtime.journal.postgres.opening import NOTE_PREFIX, check_server, insist, prepare
from semel_runtime.journal.postgres.options import PostgresOptions
from semel_runtime.journal.postgres.snapshots import MINE, PostgresSnapshots
from semel_runtime.journal.postgres.writer import Handle, Writer

# A repeat writes too: it must wait until a standby has what the claim before may have left behind.
_CLAIM = """
UPDATE owner SET token = $2, epoch = CASE
    WHEN $1::bigint IS NOT NULL THEN $1::bigint WHEN token = $2 THEN epoch ELSE epoch + 1 END
WHERE $1::bigint IS NULL OR $1::bigint > epoch OR ($1::bigint = epoch AND token = $2)
RETURNING epoch, first_offset
"""

# Asked with each append: the server may change the standbys that confirm at any time.
_STANDBYS = "current_setting('synchronous_standby_names')"

_APPEND = f"""
WITH moved AS (
    UPDATE tail SET next_offset = next_offset + $3 WHERE epoch = $1 AND next_offset = $2
    RETURNING 1
)
INSERT INTO chunks SELECT $2, $3, $4, $5 FROM moved RETURNING {_STANDBYS}
"""

_APPEND_WITH_BATCHES = f"""
WITH moved AS (
    UPDATE tail SET next_offset = next_offset + $3 WHERE epoch = $1 AND next_offset = $2
    RETURNING 1
), stored AS (
    INSERT INTO batches
    SELECT partition, base_offset, record_count, max_timestamp_ms,
        octet_length(header) + octet_length(payload), header, payload
    FROM moved CROSS JOIN unnest(
        $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bytea[], $11::bytea[]
    ) AS batch (partition, base_offset, record_count, max_timestamp_ms, header, payload)
)
INSERT INTO chunks SELECT $2, $3, $4, $5 FROM moved RETURNING {_STANDBYS}
"""

# Walks from chunk to chunk, each beginning where the one before ends, until it has enough bytes.
_READ = """
WITH RECURSIVE span (base_offset, next_offset, total_bytes, number) AS (
    (
        SELECT base_offset, base_offset + record_count, octet_length(data)::bigint, 1 FROM chunks
        WHERE base_offset <= $1 ORDER BY base_offset DESC LIMIT 1
    )
    UNION ALL
    SELECT later.base_offset, later.base_offset + record_count,
        total_bytes + octet_length(data), number + 1
    FROM span JOIN chunks AS later ON later.base_offset = span.next_offset
    WHERE total_bytes < $2
)
SELECT chunks.base_offset, record_count, crc32c, data
FROM span JOIN chunks ON chunks.base_offset = span.base_offset
WHERE total_bytes <= $2 OR number = 1 ORDER BY number
"""

_SET_CLUSTER_ID = f"""
WITH {MINE}
INSERT INTO meta SELECT 'cluster_id', $2 FROM mine
ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value
"""

_SET_NOTE = f"""
WITH {MINE}
INSERT INTO meta SELECT $2, $3 FROM mine
ON CONFLICT (key) DO UPDATE SET value = excluded.value RETURNING 1
"""


class PostgresJournal:
    """A `Journal` in a schema of a database. Made by `open`.

    Appends have a connection of their own, so that snapshots and deletions do not hold them up.
    """

    def __init__(
        self,
        place: Place,
        handle: Handle,
        appends: Writer,
        upkeep: Writer,
        *,
        readers: Readers,
        stored: dict[str, str],
        options: PostgresOptions,
    ) -> None:
        self._place = place
        self._handle = handle
        self._appends = appends
        self._upkeep = upkeep
        self._readers = readers
        self._stored = stored
        self._cluster_id = stored.get("cluster_id")
        self._options = options
        self._snapshots = PostgresSnapshots(
            upkeep, readers, piece_bytes_max=options.append_bytes_max
        )
        self._batches = PostgresBatchStore(upkeep, readers, location=str(place))

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        service: str,
        cluster_id: str | None = None,
        options: PostgresOptions | None = None,
    ) -> Self:
        """Open the journal of a service in the database at `url`; its schema is made if need be.

        Raises JournalOpenError with a sentence that says what to do, and never has the password in
        it, if the URL, the server, the rights of the user or the schema is wrong. Waits for
        troubles that may be over soon.
        """
        options = options or PostgresOptions()
        place = place_of(url, service=service)

        async def attempt() -> Self:
            async with AsyncExitStack() as stack:
                return await cls._open(
                    place, stack, service=service, cluster_id=cluster_id, options=options
                )

        return await insist(attempt, place, options)

    @classmethod
    async def _open(
        cls,
        place: Place,
        stack: AsyncExitStack,
        *,
        service: str,
        cluster_id: str | None,
        options: PostgresOptions,
    ) -> Self:
        handle = Handle()
        writers: list[Writer] = []
        for _ in range(2):
            connection = await connect(place, options)
            stack.callback(connection.terminate)  # If all goes well, the writer closes it.
            writers.append(Writer(connection, handle, timeout_ms=options.write_timeout_ms))
        appends, upkeep = writers

        async def look_and_prepare(connection: Connection) -> dict[str, str]:
            await check_server(connection, place, options)
            return await prepare(connection, place, service=service, cluster_id=cluster_id)

        stored = await appends.run(look_and_prepare)
        readers = await Readers.open(place, options)
        stack.pop_all()
        return cls(place, handle, appends, upkeep, readers=readers, stored=stored, options=options)

    @property
    def batches(self) -> PostgresBatchStore:
        """See `Journal.batches`."""
        return self._batches

    @property
    def cluster_id(self) -> str | None:
        """See `Journal.cluster_id`."""
        return self._cluster_id

    async def set_cluster_id(self, cluster_id: str) -> None:
        """See `Journal.set_cluster_id`."""
        if self._cluster_id is None:
            rows = await self._upkeep.execute(_SET_CLUSTER_ID, self._handle.epoch, cluster_id)
            if not rows:
                raise await self._upkeep.fenced()
            self._cluster_id = str(rows[0][0])
        if self._cluster_id != cluster_id:
            raise JournalOpenError(cluster_sentence(self._place, self._cluster_id, cluster_id))

    def note(self, name: str) -> str:
        """See `Journal.note`."""
        return self._stored.get(NOTE_PREFIX + name, "")

    async def set_note(self, name: str, text: str) -> None:
        """See `Journal.set_note`."""
        key = NOTE_PREFIX + name
        if not await self._upkeep.execute(_SET_NOTE, self._handle.epoch, key, text):
            raise await self._upkeep.fenced()
        self._stored[key] = text

    async def claim(self, token: str, *, epoch: int | None = None) -> Claim:
        """See `Journal.claim`."""

        async def claim(connection: Connection) -> Claim:
            async with connection.transaction():
                owned = await connection.fetchrow(_CLAIM, epoch, token)
                if owned is None:
                    stored = await connection.fetchval("SELECT epoch FROM owner")
                    raise JournalFencedError(claim_epoch=epoch or 0, stored_epoch=stored)
                end = "UPDATE tail SET epoch = $1 RETURNING next_offset"
                next_offset = await connection.fetchval(end, owned[0])
                return Claim(epoch=owned[0], first_offset=owned[1], next_offset=next_offset)

        claimed = await self._appends.run(claim)
        self._handle.own(claimed.epoch)
        return claimed

    async def append(
        self, at: int, records: Sequence[bytes], batches: Sequence[StoredBatch] = ()
    ) -> float:
        """See `Journal.append`. The seconds are those of the round trip to the server."""
        assert records or not batches, "batches never ride without a record"
        if not records:
            await self._verify(at)
            return 0.0
        data = pack_records(records)
        check_size(len(data), batches, size_bytes_max=self._options.append_bytes_max)
        assert len(batches) <= self._options.append_batches_max, "too many batches in one append"
        crc32c = checksum(at, len(records), data)
        chunk = (self._handle.epoch, at, len(records), crc32c, data)
        started = time.perf_counter()
        if not batches:
            rows = await self._appends.execute(_APPEND, *chunk)
        else:
            rows = await self._appends.execute(
                _APPEND_WITH_BATCHES,
                *chunk,
                [batch.partition for batch in batches],
                [batch.base_offset for batch in batches],
                [batch.record_count for batch in batches],
                [batch.max_timestamp_ms for batch in batches],
                [batch.header for batch in batches],
                [batch.payload for batch in batches],
            )
        seconds = time.perf_counter() - started
        if not rows:
            await self._verify(at)
            raise self._appends.dead("an append was refused, but all is as it should be")
        self._check_standbys(rows[0][0])
        return seconds

    def _check_standbys(self, names: str) -> None:
        """Believe no commit of a server whose replication was switched off meanwhile."""
        if not names.strip() and self._options.replication == "required":
            problem = "synchronous_standby_names has become empty"
            raise self._appends.dead(replication_sentence(self._place, problem))

    async def _verify(self, at: int) -> None:
        rows = await self._appends.execute("SELECT epoch, next_offset FROM tail")
        stored_epoch, next_offset = rows[0]
        if stored_epoch != self._handle.epoch:
            raise JournalFencedError(claim_epoch=self._handle.epoch, stored_epoch=stored_epoch)
        if next_offset != at:
            raise self._appends.dead(f"append at {at}, but the journal ends at {next_offset}")

    async def read(self, start: int, *, max_bytes: int) -> AsyncIterator[Piece]:
        """See `Journal.read`."""
        rows = await self._readers.fetch("SELECT next_offset FROM tail")
        end = int(rows[0][0])
        at = start
        while at < end:
            entries = await self._read_piece(at, max_bytes)
            if not entries:
                raise JournalCorruptError(f"records from {at} on are missing; the end is {end}")
            yield entries
            at = entries[-1][0] + 1

    async def _read_piece(self, at: int, max_bytes: int) -> Sequence[Entry]:
        """Read some records from `at` on; none if the one at `at` is missing."""
        rows = await self._readers.fetch(_READ, at, max_bytes)
        entries = [entry for row in rows for entry in unpack_records(*row)]
        skip = at - entries[0][0] if entries else 0
        return entries[skip:]

    def read_snapshot(self) -> AsyncIterator[Piece]:
        """See `Journal.read_snapshot`."""
        return self._snapshots.read()

    async def replace(self, upto: int, snapshot: AsyncIterable[Piece]) -> None:
        """See `Journal.replace`."""
        await self._snapshots.replace(upto, snapshot)

    def on_death(self, listener: Callable[[JournalUnknownError], None]) -> None:
        """See `Journal.on_death`: the loss of a connection that writes is noticed at once."""
        self._handle.on_death(listener)

    def free_bytes(self) -> None:
        """See `Journal.free_bytes`: the server does not tell."""
        return

    def shortage(self, queued_bytes: int = 0, may_use: Reserve = Reserve.NONE) -> None:
        """See `Journal.shortage`: the server does not tell."""
        del queued_bytes, may_use

    async def close(self) -> None:
        """See `Journal.close`."""
        self._handle.on_death(None)
        for connection in (self._appends, self._upkeep, self._readers):
            await connection.close()
        self._handle.die(JournalUnknownError("the handle is closed"))

    async def __aenter__(self) -> Self:
        """Return the journal itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()
