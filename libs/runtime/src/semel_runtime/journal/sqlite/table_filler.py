"""Filling the tables with appends that are in the log already, in bounded steps, behind it.

Each step is one transaction, which is synced: what the tables have, they have durably. Until then
appends, and the batches in them, are kept in memory for readers.
"""

import asyncio
import contextlib
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from operator import attrgetter

from semel_runtime.journal.contract import StoredBatch
from semel_runtime.journal.journal_errors import JournalError, JournalUnknownError
from semel_runtime.journal.log.frames import LoggedAppend
from semel_runtime.journal.sqlite.connections import Writer
from semel_runtime.journal.sqlite.payloads.payload_files import Place
from semel_runtime.journal.sqlite.statements import AppendsParameters

_DELAY_SECONDS = 0.2
"""How long an append may wait for others that share its transaction."""
_SOON_BYTES = 1 << 20
"""As much as is filled in without a delay."""
_STEP_BYTES_MAX = 4 << 20
_STEP_APPENDS_MAX = 4_096

_Waiting = tuple[int, "asyncio.Future[None]"]


class TableFiller:
    """Appends of one claim that the tables lack, and the task that puts them there."""

    def __init__(self, writer: Writer, *, epoch: int, log: str, stored: int) -> None:
        self._writer = writer
        self._epoch = epoch
        self._log = log
        self.stored = stored
        """The tables have all records below this offset, durably."""
        self._end = stored
        self._appends: deque[LoggedAppend] = deque()
        self._bytes = 0
        self._batches: dict[int, list[StoredBatch]] = {}
        self._waiting: deque[_Waiting] = deque()
        self._added, self._soon = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failure: JournalError | None = None

    @property
    def waiting_bytes(self) -> int:
        """Bytes that the tables will take."""
        return self._bytes

    def add(self, append: LoggedAppend) -> None:
        """Take an append that is durable in the log."""
        self._appends.append(append)
        self._end = append.next_offset
        self._bytes += append.size_bytes
        for batch in append.batches:
            self._batches.setdefault(batch.partition, []).append(batch)
        if self._task is None:
            self._task = asyncio.create_task(self._fill())
        self._added.set()
        if self._bytes >= _SOON_BYTES:
            self._soon.set()

    async def put(self, append: LoggedAppend, places: Sequence[Place] = ()) -> float:
        """Put an append into the tables that is not in the log; return the seconds it took.

        With places, the payloads of its batches are there already. Everything before it is in the
        tables. Raises JournalFencedError, JournalUnknownError.
        """
        seconds = await self._put([append], places)
        self.stored = self._end = append.next_offset
        return seconds

    async def caught_up(self, partition: int | None = None) -> None:
        """Wait until the tables have all that was added, at least of a partition.

        Raises the error that has ended the filling: JournalFencedError, JournalUnknownError.
        """
        if self.stored >= self._end or (partition is not None and partition not in self._batches):
            return
        if self._failure is not None:
            raise self._failure
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._end, done))
        self._soon.set()
        await done

    def newest(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch] | None:
        """Read as `BatchStore.read` does, what the tables lack; None if they may have the first."""
        batches = self._batches.get(partition)
        if batches is None or offset < batches[0].base_offset:
            return None
        first = bisect_right(batches, offset, key=attrgetter("base_offset")) - 1
        if batches[first].base_offset + batches[first].record_count <= offset:
            first += 1
        found: list[StoredBatch] = []
        for batch in batches[first:]:
            max_bytes -= batch.memory_bytes
            if batch.base_offset >= upto or (found and max_bytes < 0):
                break
            found.append(batch)
        return found

    async def close(self) -> None:
        """End the task, once the tables have everything.

        Raises the error that has ended the filling: JournalFencedError, JournalUnknownError.
        """
        try:
            await self.caught_up()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """End the task, whatever the tables lack."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _fill(self) -> None:
        try:
            while True:
                await self._added.wait()
                await self._delay()
                await self._step()
        except asyncio.CancelledError:
            self._fail(JournalUnknownError("the journal is closed or claimed again"))
            raise
        except JournalError as error:
            self._fail(error)

    async def _delay(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DELAY_SECONDS):
                await self._soon.wait()

    async def _step(self) -> None:
        some: list[LoggedAppend] = []
        size_bytes = 0
        for append in self._appends:
            size_bytes += append.size_bytes
            if some and (size_bytes > _STEP_BYTES_MAX or len(some) == _STEP_APPENDS_MAX):
                break
            some.append(append)
        await self._put(some)
        self._forget(some)
        self.stored = some[-1].next_offset
        if not self._appends:
            self._added.clear()
        if self._bytes < _SOON_BYTES:
            self._soon.clear()
        while self._waiting and self._waiting[0][0] <= self.stored:
            _, done = self._waiting.popleft()
            if not done.done():
                done.set_result(None)
        if self._waiting:
            self._soon.set()

    async def _put(self, appends: Sequence[LoggedAppend], places: Sequence[Place] = ()) -> float:
        parameters = AppendsParameters(self._epoch, self._log, appends, places)
        await self._writer.execute("INSERT", parameters)
        return parameters.seconds

    def _forget(self, appends: Sequence[LoggedAppend]) -> None:
        """Forget what the tables have now."""
        counts: dict[int, int] = {}
        for append in appends:
            self._appends.popleft()
            self._bytes -= append.size_bytes
            for batch in append.batches:
                counts[batch.partition] = counts.get(batch.partition, 0) + 1
        for partition, count in counts.items():
            del self._batches[partition][:count]
            if not self._batches[partition]:
                del self._batches[partition]

    def _fail(self, error: JournalError) -> None:
        self._failure = error
        for _, done in self._waiting:
            if not done.done():
                done.set_exception(error)
        self._waiting.clear()
