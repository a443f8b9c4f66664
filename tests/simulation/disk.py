"""Disks: a write is durable some time after it was made, and a loss of power may come first."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from semel_runtime.journal.contract import StoredBatch
from semel_runtime.testing.journal import MemoryBatchStore, MemoryJournal
from semel_runtime.testing.volume import MemoryVolume
from simulation.world import WORLD

SYNC_MS = (0.05, 0.6)


class SimulatedVolume(MemoryVolume):
    """A volume that takes its time."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._syncing = False
        self.sync_ms = SYNC_MS
        """How long a sync takes, between these two."""

    async def write(
        self, apply: Callable[[], None], undo: Callable[[], None] | None = None
    ) -> None:
        """See `MemoryVolume.write`."""
        if not self._syncing:
            self._syncing = True
            loop = asyncio.get_running_loop()
            delay_s = self._random.uniform(*self.sync_ms) / 1000
            loop.call_later(delay_s, self._end_sync, context=WORLD)
        self.hold()
        await super().write(apply, undo)

    def lose_power(self) -> None:
        """Lose unsynced writes, except some that were synced just now: a part of the log stays."""
        for _ in range(self._random.randint(0, len(self._waiting))):
            self._sync_one(self._waiting.pop(0))
        if self._undo:
            del self._undo[: self._random.randint(0, len(self._undo))]
        self.lose_unsynced()

    def _end_sync(self) -> None:
        self._syncing = False
        self.sync()


class Observer(Protocol):
    """An observer of the records that became durable."""

    def appended(self, at: int, records: int) -> None:
        """Be told of records."""
        ...

    def rewritten(
        self, partition: int, before: Sequence[StoredBatch], after: Sequence[StoredBatch]
    ) -> None:
        """Be told of batches that were removed or replaced."""
        ...


class ObservedJournal(MemoryJournal):
    """A journal that tells an observer of its durable records, and their places."""

    def __init__(self, volume: MemoryVolume, *, service: str, observer: Observer) -> None:
        super().__init__(volume, service=service)
        self._on_append = observer.appended
        self._batches = ObservedStore(self, observer)

    def _append(self, at: int, records: tuple[bytes, ...], batches: tuple[object, ...]) -> None:
        super()._append(at, records, batches)  # type: ignore[arg-type]  # passed on
        self._on_append(at, len(records))


class ObservedStore(MemoryBatchStore):
    """The batches of such a journal."""

    def __init__(self, journal: MemoryJournal, observer: Observer) -> None:
        super().__init__(journal)
        self._observer = observer

    def put(self, partition: int, batches: list[StoredBatch]) -> None:
        """See ``MemoryBatchStore``."""
        before = self._journal.content.batches.get(partition, [])
        super().put(partition, batches)
        self._observer.rewritten(partition, before, batches)
