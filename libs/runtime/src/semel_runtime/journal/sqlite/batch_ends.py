"""Where the batches of each partition end: none may begin before that, or reads would be wrong.

The tables lag behind the log, so the ends are kept in memory, from the first append on.
"""

from collections.abc import Sequence

from semel_runtime.journal.contract import StoredBatch
from semel_runtime.journal.sqlite.connections import Readers
from semel_runtime.journal.sqlite.statements import Value

_ASKED_MAX = 500
_ENDS_OF = "WITH asked (partition) AS (VALUES (?)"
_ONE_MORE = ", (?)"
_ENDS = """
) SELECT partition, coalesce((
    SELECT base_offset + record_count FROM batches WHERE batches.partition = asked.partition
    ORDER BY base_offset DESC LIMIT 1
), 0) FROM asked
"""


class BatchEnds:
    """The ends of the partitions that have had an append."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._ends: dict[int, int] = {}

    def take(self, batches: Sequence[StoredBatch]) -> bool:
        """Note the batches of an append; answer whether each is known to begin at or after an end.

        If not, nothing is noted.
        """
        ends: dict[int, int] = {}
        for batch in batches:
            partition = batch.partition
            end = ends.get(partition, self._ends.get(partition))
            if end is None or batch.base_offset < end:
                return False
            ends[partition] = batch.base_offset + batch.record_count
        self._ends.update(ends)
        return True

    async def learn(self, batches: Sequence[StoredBatch]) -> None:
        """Look the unknown ends up. The tables have all batches of these partitions.

        Raises JournalCorruptError, JournalError.
        """
        unknown = [
            each for each in {batch.partition for batch in batches} if each not in self._ends
        ]
        for first in range(0, len(unknown), _ASKED_MAX):
            some: Sequence[Value] = unknown[first : first + _ASKED_MAX]
            query = _ENDS_OF + _ONE_MORE * (len(some) - 1) + _ENDS
            for partition, end in await self._readers.fetch(query, some):
                self._ends[partition] = end

    def forget(self) -> None:
        """Forget everything: another claim begins."""
        self._ends.clear()
