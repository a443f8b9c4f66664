"""Snapshots in PostgreSQL: written beside the current one, put in place by one conditional update.

Rows of a snapshot that never got into place are dropped before the next one is written.
"""

from collections.abc import AsyncIterable, AsyncIterator

from semel_runtime.journal.chunks import checksum, pack_piece, unpack_piece
from semel_runtime.journal.contract import Piece
from semel_runtime.journal.journal_errors import JournalCorruptError
from semel_runtime.journal.postgres.connections import Readers
from semel_runtime.journal.postgres.writer import Writer

MINE = "mine AS MATERIALIZED (SELECT snapshot FROM owner WHERE epoch = $1 FOR NO KEY UPDATE)"
"""No row if another owner has claimed the journal; until the commit, none can."""

_INSERT = f"""
WITH {MINE}
INSERT INTO snapshot_pieces SELECT $2, $3, $4, $5 FROM mine RETURNING 1
"""

_PUT_IN_PLACE = """
UPDATE owner SET snapshot = $2, snapshot_pieces = $3, first_offset = $4
WHERE epoch = $1 AND first_offset <= $4 RETURNING 1
"""

_DROP_PIECES = f"""
WITH {MINE}
DELETE FROM snapshot_pieces WHERE (snapshot, number) IN (
    SELECT snapshot, number FROM snapshot_pieces
    WHERE snapshot <> (SELECT snapshot FROM mine) LIMIT 64
) RETURNING 1
"""

_DROP_CHUNKS = f"""
WITH {MINE}
DELETE FROM chunks WHERE base_offset IN (SELECT base_offset FROM chunks ORDER BY 1 LIMIT 1024)
AND base_offset + record_count <= (SELECT first_offset FROM owner)
AND EXISTS (SELECT FROM mine) RETURNING 1
"""


class PostgresSnapshots:
    """The table `snapshot_pieces`."""

    def __init__(self, writer: Writer, readers: Readers, *, piece_bytes_max: int) -> None:
        self._writer = writer
        self._readers = readers
        self._piece_bytes_max = piece_bytes_max

    async def read(self) -> AsyncIterator[Piece]:
        """Yield the pieces of the current snapshot."""
        rows = await self._readers.fetch("SELECT snapshot, snapshot_pieces FROM owner")
        snapshot, count = rows[0]
        for number in range(count):
            found = await self._readers.fetch(
                "SELECT crc32c, data FROM snapshot_pieces WHERE snapshot = $1 AND number = $2",
                snapshot,
                number,
            )
            if not found:
                raise JournalCorruptError(f"piece {number} of snapshot {snapshot} is missing")
            yield unpack_piece(snapshot, number, *found[0])

    async def replace(self, upto: int, snapshot: AsyncIterable[Piece]) -> None:
        """See `Journal.replace`."""
        await self._drop(_DROP_PIECES)
        number = await self._next_number(upto)
        count = await self._write(number, snapshot)
        if not await self._writer.execute(_PUT_IN_PLACE, self._writer.epoch, number, count, upto):
            await self._writer.check_epoch()
            raise self._writer.dead(f"there is a snapshot of more than {upto} records already")
        await self._drop(_DROP_PIECES)
        await self._drop(_DROP_CHUNKS)

    async def _next_number(self, upto: int) -> int:
        rows = await self._writer.execute(
            "SELECT snapshot + 1, next_offset FROM owner CROSS JOIN tail"
        )
        number, next_offset = rows[0]
        assert upto <= next_offset, f"snapshot up to {upto}, but the journal ends at {next_offset}"
        return int(number)

    async def _write(self, snapshot: int, pieces: AsyncIterable[Piece]) -> int:
        """Write all pieces and return how many they are."""
        number = 0
        async for piece in pieces:
            data = pack_piece(piece, size_bytes_max=self._piece_bytes_max)
            crc32c = checksum(snapshot, number, data)
            row = (self._writer.epoch, snapshot, number, crc32c, data)
            if not await self._writer.execute(_INSERT, *row):
                raise await self._writer.fenced()
            number += 1
        return number

    async def _drop(self, statement: str) -> None:
        """Delete in bounded steps until nothing is left."""
        while await self._writer.execute(statement, self._writer.epoch):
            pass
