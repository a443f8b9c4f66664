"""Commits a group's offsets behind the database: for lag and consoles, so no transaction waits.

They also show that the database went back to a backup: so an offset that could not be committed is
committed later.
"""

import asyncio
from collections.abc import Mapping

from aiosemel._cluster.retry import growing_pauses_ms
from aiosemel._consumer.consumer import Consumer
from aiosemel._shared.context import Spawn
from aiosemel.errors import RetriableError, SemelError
from aiosemel.types.offsets import OffsetAndMetadata, TopicPartition
from semel_common.library_log import get_logger

_log = get_logger(__name__)

_CLOSE_TIMEOUT_S = 2.0
_PAUSE_MS, _PAUSE_MAX_MS = 100, 5_000


class GroupOffsets:
    """The offsets of one consumer that its group coordinator does not have yet."""

    def __init__(self, consumer: Consumer, spawn: Spawn) -> None:
        self._consumer = consumer
        self._spawn = spawn
        self._due: dict[TopicPartition, OffsetAndMetadata] = {}
        self._task: asyncio.Task[None] | None = None

    def note(self, ends: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit these soon; later ones replace earlier ones that wait."""
        self._due.update(ends)
        if self._due and (self._task is None or self._task.done()):
            self._task = self._spawn(self._run(), name="offsets behind the database")

    async def close(self) -> None:
        """Commit what waits, if the group coordinator answers soon."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=_CLOSE_TIMEOUT_S)
            self._task.cancel()

    async def _run(self) -> None:
        pauses = growing_pauses_ms(_PAUSE_MS, _PAUSE_MAX_MS)
        while self._due:
            due, self._due = self._due, {}
            held = self._consumer.assignment()
            due = {each: at for each, at in due.items() if each in held}
            try:
                await self._consumer.commit(due)
            except RetriableError as error:
                _log.info("the group's offsets are behind the database for now: %s", error)
                self._due = due | self._due
                await asyncio.sleep(next(pauses) / 1000)
            except SemelError as error:
                _log.info("the next owner commits the group's offsets: %s", error)
