"""Record batches in SQLite: read by range, found by time, rewritten or deleted in bounded steps."""

import asyncio
import json
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from pathlib import Path

from semel_runtime.journal.chunks import batch_of, check_types
from semel_runtime.journal.contract import (
    BATCH_MEMORY_BYTES,
    REWRITTEN_MAX,
    BatchPosition,
    LaterBatches,
    StoredBatch,
)
from semel_runtime.journal.journal_errors import JournalError
from semel_runtime.journal.sqlite.appender import Appender
from semel_runtime.journal.sqlite.connections import Readers, Writer
from semel_runtime.journal.sqlite.payloads.payload_files import Place
from semel_runtime.journal.sqlite.payloads.payload_rows import has_places, stored_batches
from semel_runtime.journal.sqlite.payloads.payload_space import PayloadSpace
from semel_runtime.journal.sqlite.statements import Value
from semel_runtime.journal.sqlite.vacuum import Vacuum
from semel_runtime.process.background_pace import paced

# Walks from batch to batch until it has enough bytes. (`length` reads no payload.) It finds them in
# order; to say so (ORDER BY) would carry all payloads through a sorter, and through a file.
_READ = """
WITH RECURSIVE
bounds (first_offset) AS (SELECT coalesce((
    SELECT base_offset FROM (
        SELECT base_offset, record_count FROM batches
        WHERE partition = ?1 AND base_offset <= ?2
        ORDER BY base_offset DESC LIMIT 1
    ) WHERE base_offset + record_count > ?2
), ?2)),
span (batch, base_offset, total_bytes, number) AS (
    SELECT * FROM (
        SELECT rowid, base_offset,
            length(header) + length(payload) + coalesce(payload_bytes, 0) + ?5, 1
        FROM batches
        WHERE partition = ?1 AND base_offset < ?3
            AND base_offset >= (SELECT first_offset FROM bounds)
        ORDER BY base_offset LIMIT 1
    )
    UNION ALL
    SELECT later.rowid, later.base_offset,
        total_bytes + length(later.header) + length(later.payload)
            + coalesce(later.payload_bytes, 0) + ?5,
        number + 1
    FROM span CROSS JOIN batches AS later ON later.rowid = (
        SELECT rowid FROM batches
        WHERE partition = ?1 AND base_offset > span.base_offset AND base_offset < ?3
        ORDER BY base_offset LIMIT 1
    )
    WHERE total_bytes < ?4
)
SELECT partition, batches.base_offset, record_count, max_timestamp_ms, header, payload,
    payload_file, payload_position, payload_bytes
FROM span CROSS JOIN batches ON batches.rowid = span.batch
WHERE total_bytes <= ?4 OR number = 1
"""

# The payload, which comes last in a row, is not read; the rest is read from the row, not the index.
_READ_HEADERS = """
SELECT partition, base_offset, record_count, max_timestamp_ms, header, x'' FROM (
    SELECT rowid AS batch FROM batches
    WHERE partition = ?1 AND base_offset < ?3 AND base_offset >= coalesce((
        SELECT base_offset FROM (
            SELECT base_offset, record_count FROM batches
            WHERE partition = ?1 AND base_offset <= ?2
            ORDER BY base_offset DESC LIMIT 1
        ) WHERE base_offset + record_count > ?2
    ), ?2)
    ORDER BY base_offset LIMIT ?4
) CROSS JOIN batches ON batches.rowid = batch
"""

# The first match in a bounded number of batches; then the last batch looked at, to go on from.
_FIRST_AT = """
WITH some AS (
    SELECT base_offset, max_timestamp_ms FROM batches
    WHERE partition = ?1 AND base_offset >= ?2 AND base_offset < ?3 ORDER BY base_offset LIMIT 4096
)
SELECT * FROM (SELECT * FROM some WHERE max_timestamp_ms >= ?4 ORDER BY base_offset LIMIT 1)
UNION ALL
SELECT max(base_offset), NULL FROM some
"""

# The same from the end back, all matches of a bounded number of batches.
_LATER = """
WITH some AS (
    SELECT base_offset, max_timestamp_ms FROM batches
    WHERE partition = ?1 AND base_offset < ?2 ORDER BY base_offset DESC LIMIT 4096
)
SELECT * FROM (
    SELECT * FROM some WHERE max_timestamp_ms >= ?3 ORDER BY max_timestamp_ms DESC, base_offset
)
UNION ALL
SELECT min(base_offset), NULL FROM some
"""

# Each row is asked again itself: what a damaged index names by mistake stays.
_DELETE = """
DELETE FROM batches WHERE rowid IN (
    SELECT batch FROM (
        SELECT batch, next_offset, sum(size_bytes) OVER (
            ORDER BY base_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS bytes_before
        FROM (
            SELECT rowid AS batch, base_offset, base_offset + record_count AS next_offset,
                length(payload) AS size_bytes
            FROM batches WHERE partition = ?1 AND base_offset < ?2
            ORDER BY base_offset LIMIT ?3
        )
    ) WHERE next_offset <= ?2 AND coalesce(bytes_before, 0) < ?4
) AND +partition = ?1 AND +base_offset + record_count <= ?2 AND (SELECT epoch FROM owner) = ?5
RETURNING payload_file, payload_position, payload_bytes
"""

_PLACES = """
SELECT payload_file, payload_position, payload_bytes FROM batches
WHERE partition = ?1 AND payload_file IS NOT NULL
    AND base_offset IN (SELECT value FROM json_each(?2))
"""

_REWRITE = "INSERT INTO rewrites VALUES (?, ?, ?, ?, ?, ?)"
_REWRITE_NEXT = ", (?, ?, ?, ?, ?, ?)"


class SqliteBatchStore:
    """The table `batches`."""

    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        appender: Appender,
        vacuum: Vacuum,
        space: PayloadSpace,
        *,
        file: Path,
    ) -> None:
        self.location = str(file)
        """See `BatchStore.location`."""
        self._folder = file.parent
        self._space = space
        self._writer = writer
        self._readers = readers
        self._appender = appender
        self._vacuum = vacuum

    async def read(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See `BatchStore.read`."""
        newest = self._appender.newest(partition, offset, max_bytes=max_bytes, upto=upto)
        if newest is not None:
            return newest
        await self._appender.caught_up(partition)
        parameters = (partition, offset, upto, max_bytes, BATCH_MEMORY_BYTES)
        with self._space.reading():
            rows = sorted(await self._readers.fetch(_READ, parameters), key=itemgetter(1))
            if not has_places(rows):
                return stored_batches(self._folder, rows)
            try:
                return await asyncio.to_thread(stored_batches, self._folder, rows)
            except OSError as error:
                raise JournalError(f"reading payloads in {self._folder} failed: {error}") from error

    async def read_headers(
        self, partition: int, offset: int, *, rows_max: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See `BatchStore.read_headers`."""
        await self._appender.caught_up(partition)
        rows = await self._readers.fetch(_READ_HEADERS, (partition, offset, upto, rows_max))
        return sorted((batch_of(*row) for row in rows), key=attrgetter("base_offset"))

    async def first_at(
        self, partition: int, timestamp_ms: int, *, upto: int, start: int = 0
    ) -> BatchPosition | None:
        """See `BatchStore.first_at`. Walks an index, since time-stamps need not rise."""
        await self._appender.caught_up(partition)
        while True:
            rows = await self._readers.fetch(_FIRST_AT, (partition, start, upto, timestamp_ms))
            base_offset, max_timestamp_ms = rows[0]
            if max_timestamp_ms is not None:
                check_types(rows[0], int, int)
                return BatchPosition(base_offset=base_offset, max_timestamp_ms=max_timestamp_ms)
            if base_offset is None:
                return None
            check_types((base_offset,), int)
            start = base_offset + 1

    async def later(self, partition: int, timestamp_ms: int, *, upto: int) -> LaterBatches:
        """See `BatchStore.later`."""
        await self._appender.caught_up(partition)
        *rows, (lowest, _) = await self._readers.fetch(_LATER, (partition, upto, timestamp_ms))
        for row in rows:
            check_types(row, int, int)
        return LaterBatches(
            [BatchPosition(base_offset=at, max_timestamp_ms=time_ms) for at, time_ms in rows],
            lowest,
        )

    async def rewrite(
        self, partition: int, *, removed: Sequence[int], replaced: Sequence[StoredBatch]
    ) -> None:
        """See `BatchStore.rewrite`. One statement, and so one transaction."""
        await self._appender.caught_up(partition)
        count = len(removed) + len(replaced)
        assert 0 < count <= REWRITTEN_MAX, f"{count} batches in one step"
        epoch = self._writer.epoch
        row: list[Value] = []
        for base_offset in removed:
            row += (epoch, partition, base_offset, None, None, None)
        for batch in replaced:
            row += (epoch, partition, batch.base_offset, batch.max_timestamp_ms)
            row += (batch.header, batch.payload)
        offsets = json.dumps([*removed, *(batch.base_offset for batch in replaced)])
        places = await self._readers.fetch(_PLACES, (partition, offsets))
        await self._writer.execute(_REWRITE + _REWRITE_NEXT * (count - 1), row)
        self._space.freed(Place(*place) for place in places)

    async def delete(self, partition: int, *, before: int, rows_max: int, bytes_max: int) -> int:
        """See `BatchStore.delete`."""
        await self._appender.caught_up(partition)
        parameters = (partition, before, rows_max, bytes_max, self._writer.epoch)
        rows = (await self._writer.execute_unsynced(_DELETE, parameters)).returned
        deleted = len(rows)
        self._space.freed(Place(*row) for row in rows if row[0] is not None)
        self._vacuum.hold(more_comes=bool(deleted))
        if deleted:
            self._writer.owes_sync = True
        else:
            await self._writer.check_epoch()
        return deleted

    async def give_back(self) -> bool:
        """See `BatchStore.give_back`."""
        await self._writer.check_epoch()
        if not self._vacuum.is_held and await self._give_payloads_back():
            return True
        return await paced(self._vacuum.give_back())

    async def _give_payloads_back(self) -> bool:
        """Take a step that holds no append up, but keeps the disk busy while it removes files."""
        return await paced(self._space.give_back(), pause_steps=1)
