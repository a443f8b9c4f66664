"""A disk in memory: survives the journals on it, and can lose unsynced writes.

Writes queue until a sync makes them durable, all in order; a write is applied, and its conditions
are checked, at that moment. By default every write is synced at the next turn of the event loop;
`hold` stops that until `sync`. What comes with its opposite is applied then, but becomes durable
with the next write that does not. No threads, no clock: the same calls give the same history.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from semel_runtime.journal.contract import Piece, StoredBatch
from semel_runtime.journal.journal_errors import JournalError, JournalUnknownError


@dataclass(slots=True, kw_only=True)
class Content:
    """The content for readers: durable, except deletions that a loss of power may take back."""

    service: str | None = None
    cluster_id: str | None = None
    notes: dict[str, str] = field(default_factory=dict)
    epoch: int = 0
    token: str = ""
    first_offset: int = 0
    records: list[bytes] = field(default_factory=list)
    """The records from `first_offset` on."""
    snapshot: tuple[Piece, ...] = ()
    batches: dict[int, list[StoredBatch]] = field(default_factory=dict)
    """By partition, in order of offsets."""

    @property
    def next_offset(self) -> int:
        """Where the next append must be made."""
        return self.first_offset + len(self.records)


@dataclass(frozen=True, slots=True)
class _Write:
    apply: Callable[[], None]
    undo: Callable[[], None] | None
    done: asyncio.Future[None]


class MemoryVolume:
    """What a data folder is to the SQLite engine."""

    def __init__(self) -> None:
        self.content = Content()
        self.free_bytes = 1 << 40
        """What journals on this volume report; tests set it."""
        self.crashes = 0
        """How often unsynced writes were lost; earlier handles are dead."""
        self._waiting: list[_Write] = []
        self._undo: list[Callable[[], None]] = []
        """What takes back the applied writes that are not durable, in order."""
        self._held = False
        self._fail_next: bool | None = None

    def hold(self) -> None:
        """Keep writes waiting until `sync`, and those after them too, until `release`."""
        self._held = True

    def release(self) -> None:
        """Sync now, and every write from now on by itself."""
        self._held = False
        self.sync()

    @property
    def unsynced(self) -> int:
        """How many writes wait."""
        return len(self._waiting)

    def sync(self) -> None:
        """Make all that waits durable, in order."""
        waiting, self._waiting = self._waiting, []
        for write in waiting:
            self._sync_one(write)

    def lose_unsynced(self) -> None:
        """Lose power: what waits is gone, and every open handle is dead."""
        waiting, self._waiting = self._waiting, []
        while self._undo:
            self._undo.pop()()
        self.crashes += 1
        for write in waiting:
            _fail(write, JournalUnknownError("power was lost before the sync"))

    def fail_next_write(self, *, applied: bool) -> None:
        """Let the next write's outcome be unknown to its caller, with or without its effect."""
        self._fail_next = applied

    async def write(
        self, apply: Callable[[], None], undo: Callable[[], None] | None = None
    ) -> None:
        """Queue a write and wait until it is applied; cancelling loses only the waiting.

        It is durable then, too, if there is nothing that would take it back.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Write(apply, undo, done))
        if not self._held:
            loop.call_soon(self._sync_if_free)
        await done

    def _sync_if_free(self) -> None:
        if not self._held:
            self.sync()

    def _sync_one(self, write: _Write) -> None:
        fail, self._fail_next = self._fail_next, None
        try:
            if fail is not False:
                self._apply(write)
            if fail is not None:
                raise JournalUnknownError("the outcome of the write is unknown")
        except JournalError as error:
            _fail(write, error)
        else:
            if not write.done.done():
                write.done.set_result(None)

    def _apply(self, write: _Write) -> None:
        write.apply()
        if write.undo is None:
            self._undo.clear()
        else:
            self._undo.append(write.undo)


def _fail(write: _Write, error: JournalError) -> None:
    if not write.done.done():
        write.done.set_exception(error)
