"""Record batches in PostgreSQL: read by range, found by time, rewritten or deleted in steps."""

from collections.abc import Sequence

from semel_runtime.journal.chunks import batch_of
from semel_runtime.journal.contract import (
    BATCH_MEMORY_BYTES,
    REWRITTEN_MAX,
    BatchPosition,
    LaterBatches,
    StoredBatch,
)
from semel_runtime.journal.postgres.connections import Readers
from semel_runtime.journal.postgres.snapshots import MINE
from semel_runtime.journal.postgres.writer import Writer

# The batch that holds the offset $2, or else the offset itself: where reading starts.
_START = """
coalesce((
    SELECT base_offset FROM (
        SELECT base_offset, record_count FROM batches
        WHERE partition = $1 AND base_offset <= $2
        ORDER BY base_offset DESC LIMIT 1
    ) AS before WHERE base_offset + record_count > $2
), $2)
"""

# Walks from batch to batch until it has enough bytes.
_READ = f"""
WITH RECURSIVE span (base_offset, total_bytes, number) AS (
    (
        SELECT base_offset, size_bytes + {BATCH_MEMORY_BYTES}, 1 FROM batches
        WHERE partition = $1 AND base_offset < $3 AND base_offset >= {_START}
        ORDER BY base_offset LIMIT 1
    )
    UNION ALL
    SELECT later.base_offset, total_bytes + later.size_bytes + {BATCH_MEMORY_BYTES}, number + 1
    FROM span CROSS JOIN LATERAL (
        SELECT base_offset, size_bytes FROM batches
        WHERE partition = $1 AND base_offset > span.base_offset AND base_offset < $3
        ORDER BY base_offset LIMIT 1
    ) AS later
    WHERE total_bytes < $4
)
SELECT partition, base_offset, record_count, max_timestamp_ms, header, payload
FROM span CROSS JOIN LATERAL (
    SELECT partition, record_count, max_timestamp_ms, header, payload FROM batches
    WHERE partition = $1 AND base_offset = span.base_offset
) AS batch
WHERE total_bytes <= $4 OR number = 1
ORDER BY number
"""

_READ_HEADERS = f"""
SELECT partition, base_offset, record_count, max_timestamp_ms, header, ''::bytea FROM batches
WHERE partition = $1 AND base_offset < $3 AND base_offset >= {_START}
ORDER BY base_offset LIMIT $4
"""

_FIRST_AT = """
SELECT base_offset, max_timestamp_ms FROM batches
WHERE partition = $1 AND base_offset >= $2 AND base_offset < $3 AND max_timestamp_ms >= $4
ORDER BY base_offset LIMIT 1
"""

# All matches of a bounded number of batches; then the first batch looked at, to go on from.
_LATER = """
WITH looked_at AS (
    SELECT base_offset, max_timestamp_ms FROM batches
    WHERE partition = $1 AND base_offset < $2 ORDER BY base_offset DESC LIMIT 4096
)
SELECT * FROM looked_at WHERE max_timestamp_ms >= $3
UNION ALL
SELECT min(base_offset), NULL FROM looked_at
ORDER BY max_timestamp_ms DESC NULLS LAST, base_offset
"""

_DELETE = f"""
WITH {MINE}, gone AS (
    DELETE FROM batches WHERE partition = $2 AND base_offset IN (
        SELECT base_offset FROM (
            SELECT base_offset, next_offset, sum(payload_bytes) OVER (
                ORDER BY base_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS bytes_before
            FROM (
                SELECT base_offset, base_offset + record_count AS next_offset,
                    octet_length(payload) AS payload_bytes
                FROM batches WHERE partition = $2 AND base_offset < $3
                ORDER BY base_offset LIMIT $4
            ) AS oldest
        ) AS counted WHERE next_offset <= $3 AND coalesce(bytes_before, 0) < $5
    ) AND EXISTS (SELECT FROM mine) RETURNING 1
)
SELECT (SELECT count(*) FROM mine), (SELECT count(*) FROM gone)
"""

_REWRITE = f"""
WITH {MINE}, gone AS (
    DELETE FROM batches
    WHERE partition = $2 AND base_offset = ANY ($3::bigint[]) AND EXISTS (SELECT FROM mine)
), changed AS (
    UPDATE batches SET
        max_timestamp_ms = new.max_timestamp_ms, header = new.header, payload = new.payload,
        size_bytes = octet_length(new.header) + octet_length(new.payload)
    FROM unnest($4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[])
        AS new (base_offset, max_timestamp_ms, header, payload)
    WHERE partition = $2 AND batches.base_offset = new.base_offset AND EXISTS (SELECT FROM mine)
)
SELECT FROM mine
"""


class PostgresBatchStore:
    """The table `batches`."""

    def __init__(self, writer: Writer, readers: Readers, *, location: str) -> None:
        self.location = location
        """See `BatchStore.location`."""
        self._writer = writer
        self._readers = readers

    async def read(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See `BatchStore.read`."""
        rows = await self._readers.fetch(_READ, partition, offset, upto, max_bytes)
        return [batch_of(*row) for row in rows]

    async def read_headers(
        self, partition: int, offset: int, *, rows_max: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See `BatchStore.read_headers`."""
        rows = await self._readers.fetch(_READ_HEADERS, partition, offset, upto, rows_max)
        return [batch_of(*row) for row in rows]

    async def first_at(
        self, partition: int, timestamp_ms: int, *, upto: int, start: int = 0
    ) -> BatchPosition | None:
        """See `BatchStore.first_at`. Walks an index, since time-stamps need not rise."""
        rows = await self._readers.fetch(_FIRST_AT, partition, start, upto, timestamp_ms)
        for base_offset, max_timestamp_ms in rows:
            return BatchPosition(base_offset=base_offset, max_timestamp_ms=max_timestamp_ms)
        return None

    async def later(self, partition: int, timestamp_ms: int, *, upto: int) -> LaterBatches:
        """See `BatchStore.later`."""
        *rows, (lowest, _) = await self._readers.fetch(_LATER, partition, upto, timestamp_ms)
        return LaterBatches(
            [BatchPosition(base_offset=at, max_timestamp_ms=time_ms) for at, time_ms in rows],
            lowest,
        )

    async def rewrite(
        self, partition: int, *, removed: Sequence[int], replaced: Sequence[StoredBatch]
    ) -> None:
        """See `BatchStore.rewrite`."""
        count = len(removed) + len(replaced)
        assert 0 < count <= REWRITTEN_MAX, f"{count} batches in one step"
        mine = await self._writer.execute(
            _REWRITE,
            self._writer.epoch,
            partition,
            list(removed),
            [batch.base_offset for batch in replaced],
            [batch.max_timestamp_ms for batch in replaced],
            [batch.header for batch in replaced],
            [batch.payload for batch in replaced],
        )
        if not mine:
            raise await self._writer.fenced()

    async def delete(self, partition: int, *, before: int, rows_max: int, bytes_max: int) -> int:
        """See `BatchStore.delete`."""
        parameters = (self._writer.epoch, partition, before, rows_max, bytes_max)
        (mine, deleted), *_ = await self._writer.execute(_DELETE, *parameters)
        if not mine:
            raise await self._writer.fenced()
        return int(deleted)

    async def give_back(self) -> bool:
        """See `BatchStore.give_back`. The server's autovacuum does it."""
        await self._writer.check_epoch()
        return False
