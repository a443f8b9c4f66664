"""The automatic commits of a consumer, if it wants them: polled records count as processed.

A poll only begins a commit, and does not wait for it, so a consumer that cannot commit still reads.
One commit runs at a time, and it ends before any other commit begins: an offset that is sent again
must not come after a newer one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from aiosemel._cluster.retry import Deadline
from aiosemel._shared.background_task import end_task
from aiosemel._shared.context import Spawn
from aiosemel.errors import SemelError
from aiosemel.types.offsets import OffsetAndMetadata, TopicPartition
from semel_common.library_log import get_logger

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

_log = get_logger(__name__)


class AutoCommit:
    """The automatic commits of one consumer."""

    def __init__(
        self,
        spawn: Spawn,
        interval_ms: int | None,
        timeout_ms: int,
        positions: Callable[[], Offsets],
        commit: Callable[[Offsets, Deadline], Awaitable[None]],
    ) -> None:
        """Commit ``positions`` every ``interval_ms``; None: never. ``timeout_ms`` is for each."""
        self._spawn = spawn
        self._interval_ms = interval_ms
        self._timeout_ms = timeout_ms
        self._positions = positions
        self._commit = commit
        self._due: Deadline | None = None
        self._task: asyncio.Task[None] | None = None

    def poll(self) -> None:
        """Begin to commit what earlier polls returned, if it is time and none is under way."""
        if self._interval_ms is None or (self._due is not None and not self._due.passed):
            return
        is_first, self._due = self._due is None, Deadline.after_ms(self._interval_ms)
        if not is_first and (self._task is None or self._task.done()):
            deadline = Deadline.after_ms(self._timeout_ms)
            self._task = self._spawn(self._try(self._positions(), deadline), name="auto commit")

    async def stop(self) -> None:
        """End the commit that is under way: another comes."""
        task, self._task = self._task, None
        await end_task(task)

    async def last(self, deadline: Deadline | None) -> None:
        """Commit before partitions are given up, and wait for it; None: as long as for any."""
        if self._interval_ms is not None:
            await self.stop()
            await self._try(self._positions(), deadline or Deadline.after_ms(self._timeout_ms))

    async def _try(self, positions: Offsets, deadline: Deadline) -> None:
        try:
            await self._commit(positions, deadline)
        except SemelError as error:
            _log.warning("the offsets of polled records are not committed: %s", error)
