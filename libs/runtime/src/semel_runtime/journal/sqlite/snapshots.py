"""Snapshots in SQLite: written beside the current one, put in place by one conditional update.

Rows of a snapshot that never got into place are dropped before the next one is written.
"""

from collections.abc import AsyncIterable, AsyncIterator

from semel_runtime.journal.chunks import checksum, pack_piece, unpack_piece
from semel_runtime.journal.contract import Piece
from semel_runtime.journal.journal_errors import JournalCorruptError
from semel_runtime.journal.sqlite.appender import Appender
from semel_runtime.journal.sqlite.connections import Readers, Writer
from semel_runtime.journal.sqlite.vacuum import Vacuum
from semel_runtime.process.background_pace import paced

_INSERT = "INSERT INTO snapshot_appends VALUES (?, ?, ?, ?, ?)"

_PUT_IN_PLACE = """
UPDATE owner SET snapshot = ?1, snapshot_pieces = ?2, first_offset = ?3
WHERE epoch = ?4 AND first_offset <= ?3 RETURNING 1
"""

_DROP_PIECES = """
DELETE FROM snapshot_pieces WHERE rowid IN (
    SELECT rowid FROM snapshot_pieces WHERE snapshot <> (SELECT snapshot FROM owner) LIMIT 16
) AND (SELECT epoch FROM owner) = ?
"""

_DROP_CHUNKS = """
DELETE FROM chunks WHERE base_offset IN (SELECT base_offset FROM chunks ORDER BY 1 LIMIT 256)
AND base_offset + record_count <= (SELECT first_offset FROM owner)
AND (SELECT epoch FROM owner) = ?
"""


class SqliteSnapshots:
    """The table `snapshot_pieces`."""

    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        appender: Appender,
        vacuum: Vacuum,
        *,
        piece_bytes_max: int,
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._appender = appender
        self._vacuum = vacuum
        self._piece_bytes_max = piece_bytes_max

    async def read(self) -> AsyncIterator[Piece]:
        """Yield the pieces of the current snapshot."""
        rows = await self._readers.fetch("SELECT snapshot, snapshot_pieces FROM owner", ())
        snapshot, count = rows[0]
        for number in range(count):
            found = await self._readers.fetch(
                "SELECT crc32c, data FROM snapshot_pieces WHERE snapshot = ? AND number = ?",
                (snapshot, number),
            )
            if not found:
                raise JournalCorruptError(f"piece {number} of snapshot {snapshot} is missing")
            yield unpack_piece(snapshot, number, *found[0])

    async def replace(self, upto: int, snapshot: AsyncIterable[Piece]) -> None:
        """See `Journal.replace`."""
        await self._appender.caught_up()
        await self._drop(_DROP_PIECES)
        number = await self._next_number(upto)
        count = await self._write(number, snapshot)
        parameters = (number, count, upto, self._writer.epoch)
        if not await self._writer.execute(_PUT_IN_PLACE, parameters):
            await self._writer.check_epoch()
            raise self._writer.dead(f"there is a snapshot of more than {upto} records already")
        await self._drop(_DROP_PIECES)
        await self._drop(_DROP_CHUNKS)
        while await paced(self._vacuum.give_back()):
            pass

    async def _next_number(self, upto: int) -> int:
        rows = await self._writer.execute("SELECT snapshot + 1, next_offset FROM positions")
        number, next_offset = rows[0]
        assert upto <= next_offset, f"snapshot up to {upto}, but the journal ends at {next_offset}"
        return int(number)

    async def _write(self, snapshot: int, pieces: AsyncIterable[Piece]) -> int:
        """Write all pieces and return how many they are."""
        number = 0
        async for piece in pieces:
            data = pack_piece(piece, size_bytes_max=self._piece_bytes_max)
            crc32c = checksum(snapshot, number, data)
            await self._writer.execute_unsynced(
                _INSERT, (self._writer.epoch, snapshot, number, crc32c, data)
            )
            number += 1
        return number

    async def _drop(self, statement: str) -> None:
        """Delete in bounded steps until nothing is left, so that appends pass in between."""
        while (await self._writer.execute_unsynced(statement, (self._writer.epoch,))).changed:
            pass
