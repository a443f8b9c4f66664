"""A store of batches that gives out nothing damaged: what comes from the medium is checked here.

The one place where it is: ends of logs in memory lie above, and every reader above those. A read
ends before a damaged batch; one that begins with it says what is wrong.
"""

from collections.abc import Sequence

from semel_broker.storage.batch_integrity import what_is_wrong
from semel_runtime.journal.contract import BatchPosition, BatchStore, LaterBatches, StoredBatch
from semel_runtime.journal.journal_errors import JournalCorruptError


class DamagedBatchError(JournalCorruptError):
    """A batch is not the one that was written."""

    def __init__(self, batch: StoredBatch, problem: str) -> None:
        super().__init__(f"the batch at offset {batch.base_offset} {problem}")
        self.batch = batch


class VerifiedStore:
    """Checks what another store reads. Implements ``BatchStore``."""

    def __init__(self, store: BatchStore) -> None:
        self._store = store

    @property
    def location(self) -> str:
        """See ``BatchStore.location``."""
        return self._store.location

    async def read(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See ``BatchStore.read``. Raises DamagedBatchError if the first batch is damaged."""
        found = await self._store.read(partition, offset, max_bytes=max_bytes, upto=upto)
        return _sound(found, partition, payload_read=True)

    async def read_headers(
        self, partition: int, offset: int, *, rows_max: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See ``BatchStore.read_headers``. Raises as ``read``; payloads are not looked at."""
        found = await self._store.read_headers(partition, offset, rows_max=rows_max, upto=upto)
        return _sound(found, partition, payload_read=False)

    async def first_at(
        self, partition: int, timestamp_ms: int, *, upto: int, start: int = 0
    ) -> BatchPosition | None:
        """See ``BatchStore.first_at``: what is found is a place to look at."""
        return await self._store.first_at(partition, timestamp_ms, upto=upto, start=start)

    async def later(self, partition: int, timestamp_ms: int, *, upto: int) -> LaterBatches:
        """See ``BatchStore.later``: what is found are places to look at."""
        return await self._store.later(partition, timestamp_ms, upto=upto)

    async def rewrite(
        self, partition: int, *, removed: Sequence[int], replaced: Sequence[StoredBatch]
    ) -> None:
        """See ``BatchStore.rewrite``."""
        await self._store.rewrite(partition, removed=removed, replaced=replaced)

    async def delete(self, partition: int, *, before: int, rows_max: int, bytes_max: int) -> int:
        """See ``BatchStore.delete``."""
        return await self._store.delete(
            partition, before=before, rows_max=rows_max, bytes_max=bytes_max
        )

    async def give_back(self) -> bool:
        """See ``BatchStore.give_back``."""
        return await self._store.give_back()


def _sound(
    found: Sequence[StoredBatch], partition: int, *, payload_read: bool
) -> Sequence[StoredBatch]:
    """Return the batches up to the first one that is damaged."""
    for number, batch in enumerate(found):
        problem = what_is_wrong(batch, partition, payload_read=payload_read)
        if problem is not None:
            if number == 0:
                raise DamagedBatchError(batch, problem)
            return found[:number]
    return found
