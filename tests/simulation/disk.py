"""Disks: a write is durable some time after it was made, and a loss of power may come first."""

import asyncio
from collections.abc import Callable
from random import Random

from semel_runtime.testing.journal import MemoryJournal
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

    async def write(self, apply: Callable[[], None]) -> None:
        """See `MemoryVolume.write`."""
        if not self._syncing:
            self._syncing = True
            loop = asyncio.get_running_loop()
            delay_s = self._random.uniform(*self.sync_ms) / 1000
            loop.call_later(delay_s, self._end_sync, context=WORLD)
        self.hold()
        await super().write(apply)

    def lose_power(self) -> None:
        """Lose what is not synced, but for some that just made it."""
        for _ in range(self._random.randint(0, len(self._waiting))):
            self._sync_one(self._waiting.pop(0))
        self.lose_unsynced()

    def _end_sync(self) -> None:
        self._syncing = False
        self.sync()


class ObservedJournal(MemoryJournal):
    """A journal that tells what it has made durable, and where."""

    def __init__(
        self, volume: MemoryVolume, *, service: str, on_append: Callable[[int, int], None]
    ) -> None:
        super().__init__(volume, service=service)
        self._on_append = on_append

    def _append(self, at: int, records: tuple[bytes, ...], batches: tuple[object, ...]) -> None:
        super()._append(at, records, batches)  # type: ignore[arg-type]  # passed on
        self._on_append(at, len(records))
