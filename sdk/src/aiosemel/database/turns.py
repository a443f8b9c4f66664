"""Transactions of a database that has one at a time: each waits for its turn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiosemel.errors import IllegalStateError


class Turns:
    """The turns of one database."""

    def __init__(self) -> None:
        self._one = asyncio.Semaphore()
        self._task: asyncio.Task[object] | None = None

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the end of the block.

        Raises IllegalStateError inside a turn of the same task, which would wait for itself.
        """
        if self._task is asyncio.current_task():
            raise IllegalStateError(
                "this task has a transaction of the database open, and a second one would wait"
                " until the first one ends: use the session of the first one"
            )
        async with self._one:
            self._task = asyncio.current_task()
            try:
                yield
            finally:
                self._task = None
