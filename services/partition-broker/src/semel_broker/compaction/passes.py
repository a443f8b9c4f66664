"""One pass over one log, in steps.

A step reads some batches, decides, and writes in one atomic write what became of them. An append
waits for one step at most, and after each there is a pause. Payloads are opened and made beside the
event loop when they are large.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from semel_broker.compaction.keys import KeyMap
from semel_broker.compaction.payloads import ReadBatch, open_batch, rewrite
from semel_broker.compaction.rules import Cleaning
from semel_broker.machine.compaction import CompactionPlan
from semel_broker.machine.records import LogCompacted
from semel_broker.storage.log_reader import Damage, LogReader
from semel_broker.storage.opened_payloads import INLINE_MAX_BYTES, opens_to
from semel_broker.storage.stored_batches import read_header
from semel_common.errors import KafkaStorageError
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES
from semel_runtime.clock import Clock
from semel_runtime.journal.contract import REWRITTEN_MAX, BatchStore, StoredBatch
from semel_runtime.process.background_pace import paced
from semel_runtime.process.worker_threads import Offload

T = TypeVar("T")

_STEP_BYTES = 64 << 10
"""What a step reads, and so the most that it writes; a single batch may go over it."""


class UnreadableLogError(Exception):
    """The store cannot read a log; others may be well."""


class CompactionPass:
    """A pass over the log that a plan is about; made for one."""

    def __init__(
        self,
        plan: CompactionPlan,
        store: BatchStore,
        logs: LogReader,
        clock: Clock,
        offload: Offload,
    ) -> None:
        self._plan = plan
        self._store = store
        self._logs = logs
        self._clock = clock
        self._offload = offload
        self.unopened = 0
        """Batches that could not be opened."""

    async def survey(self, *, upto: int, keys_max: int) -> KeyMap:
        """Find the newest record of each key in the dirty part, as far as there is room for keys.

        Raises UnreadableLogError.
        """
        keys = KeyMap(start=self._plan.dirty_offset, keys_max=keys_max)
        while not keys.full:
            batches = await self._read(keys.upto, upto)
            if not batches:
                keys.reach(upto)
                break
            await self._beside(partial(_add, keys, batches), batches)
        return keys

    async def clean(self, keys: KeyMap, *, wanted: Callable[[], bool]) -> LogCompacted | None:
        """Rewrite the log as far as the keys are known; None if it was given up half-way.

        Raises UnreadableLogError, and errors of the store's writes.
        """
        config = self._plan.config
        cleaning = Cleaning(keys, delete_retention_ms=config.delete_retention_ms)
        offset = self._plan.log_start_offset
        size_bytes = 0
        while batches := await self._read(offset, keys.upto):
            if not wanted():
                return None
            size_bytes += await paced(self._step(cleaning, batches))
            offset = _end(batches[-1])
        while await self._store.give_back():
            pass
        self.unopened = cleaning.unopened
        return LogCompacted(
            log_id=self._plan.log_id,
            upto=keys.upto,
            records_left=cleaning.records_left,
            size_bytes_left=size_bytes,
        )

    async def _step(self, cleaning: Cleaning, batches: Sequence[ReadBatch]) -> int:
        """Clean some batches; answer how much is left of them."""
        decide = partial(
            rewrite,
            cleaning,
            batches,
            now_ms=self._clock.now_ms(),
            payload_max_bytes=OPENED_MAX_BYTES,
        )
        result = await self._beside(decide, batches)
        if result.removed or result.replaced:
            await self._store.rewrite(
                self._plan.log_id, removed=result.removed, replaced=result.replaced
            )
        return result.size_bytes_left

    async def _read(self, offset: int, upto: int) -> Sequence[ReadBatch]:
        if offset >= upto:
            return ()
        try:
            found = await self._logs.look(
                self._plan.place, offset, max_bytes=_STEP_BYTES, upto=upto
            )
        except KafkaStorageError as error:
            raise UnreadableLogError(error.message) from error
        if not isinstance(found, Damage):
            return [self._judged(stored) for stored in found[:REWRITTEN_MAX]]
        if found.batch is None:
            raise UnreadableLogError(found.error.message)
        return [ReadBatch(stored=found.batch, aborted=False, damaged=True)]

    def _judged(self, stored: StoredBatch) -> ReadBatch:
        header = read_header(stored)
        aborted = (
            header.transactional
            and not header.control
            and self._plan.aborted.covers(
                header.producer_id, header.producer_epoch, stored.base_offset
            )
        )
        return ReadBatch(stored=stored, aborted=aborted)

    async def _beside(self, work: Callable[[], T], batches: Sequence[ReadBatch]) -> T:
        if (
            sum(opens_to(batch.stored) for batch in batches if not batch.damaged)
            <= INLINE_MAX_BYTES
        ):
            return work()
        return await self._offload(work)


def _add(keys: KeyMap, batches: Sequence[ReadBatch]) -> None:
    for batch in batches:
        if keys.full:
            return
        keys.add(open_batch(batch, payload_max_bytes=OPENED_MAX_BYTES).content)


def _end(batch: ReadBatch) -> int:
    return batch.stored.base_offset + batch.stored.record_count
