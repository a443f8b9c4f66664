"""The ends of the logs in memory: a reader at the end of a log reads from here.

Theory of operation. The tail keeps durable batches, in the order of the appends over all logs,
until there are too many bytes; then the oldest goes. So of each log a piece without gaps is kept,
to its durable end, and a read that begins in there needs neither a thread nor the disk. A read
further back goes to the store. Once the store has rewritten or deleted batches of a log, the kept
ones are not read any more: a batch that is read here is always the one in the store.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter

from semel_runtime.journal.contract import BatchPosition, BatchStore, LaterBatches, StoredBatch

_Tail = deque[StoredBatch]
"""The last batches of one log."""

_base_offset = attrgetter("base_offset")


class TailStore:
    """A store of batches with the ends of its logs in memory. Implements ``BatchStore``."""

    def __init__(self, store: BatchStore, *, max_bytes: int) -> None:
        """Keep about ``max_bytes`` in memory; 0: nothing."""
        self._store = store
        self._max_bytes = max_bytes
        self._tails: dict[int, _Tail] = {}
        self._order: deque[_Tail] = deque()
        """Whose batch is the next to go; also of logs of which nothing is read here any more."""
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """About how much memory is in use."""
        return self._size_bytes

    def appended(self, batches: Sequence[StoredBatch]) -> None:
        """Keep batches that have become durable, in the order of their appends."""
        if not self._max_bytes:
            return
        for batch in batches:
            tail = self._tails.get(batch.partition)
            if tail is None:
                tail = self._tails[batch.partition] = deque()
            tail.append(batch)
            self._order.append(tail)
            self._size_bytes += batch.memory_bytes
        while self._size_bytes > self._max_bytes:
            self._drop_oldest()

    @property
    def location(self) -> str:
        """See ``BatchStore.location``."""
        return self._store.location

    async def read(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See ``BatchStore.read``."""
        tail = self._tails.get(partition)
        if tail is not None and tail[0].base_offset <= offset:
            return _read(tail, offset, max_bytes=max_bytes, upto=upto)
        return await self._store.read(partition, offset, max_bytes=max_bytes, upto=upto)

    async def read_headers(
        self, partition: int, offset: int, *, rows_max: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See ``BatchStore.read_headers``."""
        return await self._store.read_headers(partition, offset, rows_max=rows_max, upto=upto)

    async def first_at(
        self, partition: int, timestamp_ms: int, *, upto: int, start: int = 0
    ) -> BatchPosition | None:
        """See ``BatchStore.first_at``."""
        return await self._store.first_at(partition, timestamp_ms, upto=upto, start=start)

    async def later(self, partition: int, timestamp_ms: int, *, upto: int) -> LaterBatches:
        """See ``BatchStore.later``."""
        return await self._store.later(partition, timestamp_ms, upto=upto)

    async def rewrite(
        self, partition: int, *, removed: Sequence[int], replaced: Sequence[StoredBatch]
    ) -> None:
        """See ``BatchStore.rewrite``."""
        try:
            await self._store.rewrite(partition, removed=removed, replaced=replaced)
        finally:
            self._tails.pop(partition, None)

    async def delete(self, partition: int, *, before: int, rows_max: int, bytes_max: int) -> int:
        """See ``BatchStore.delete``."""
        tail = self._tails.get(partition)
        if tail is not None and _end(tail[0]) <= before:
            del self._tails[partition]
        return await self._store.delete(
            partition, before=before, rows_max=rows_max, bytes_max=bytes_max
        )

    async def give_back(self) -> bool:
        """See ``BatchStore.give_back``."""
        return await self._store.give_back()

    def _drop_oldest(self) -> None:
        tail = self._order.popleft()
        batch = tail.popleft()
        self._size_bytes -= batch.memory_bytes
        if not tail and self._tails.get(batch.partition) is tail:
            del self._tails[batch.partition]


def _read(tail: _Tail, offset: int, *, max_bytes: int, upto: int) -> list[StoredBatch]:
    """As ``BatchStore.read``, of a tail that begins at or before the offset."""
    at = bisect_right(tail, offset, key=_base_offset) - 1
    if _end(tail[at]) <= offset:
        at += 1
    found: list[StoredBatch] = []
    for batch in islice(tail, at, None):  # An index would count from an end, for each batch again.
        max_bytes -= batch.memory_bytes
        if batch.base_offset >= upto or (found and max_bytes < 0):
            break
        found.append(batch)
    return found


def _end(batch: StoredBatch) -> int:
    return batch.base_offset + batch.record_count
