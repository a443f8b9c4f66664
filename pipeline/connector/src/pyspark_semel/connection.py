"""The client of this process, for code that Spark calls and that does not await.

Spark forks a process for its tasks, and uses it again for many of them: a process keeps one event
loop, in a thread of its own, and one client for each cluster. Objects that Spark pickles hold
options, never a connection.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from functools import cache
from typing import TypeVar

from aiosemel import SemelClient

_T = TypeVar("_T")


class Connection:
    """A client of one cluster, and the loop that it lives in."""

    def __init__(self, bootstrap: str, loop: asyncio.AbstractEventLoop) -> None:
        """Check the addresses; raises InvalidConfigError. Connects when it is first needed."""
        self._loop = loop
        self.client = SemelClient(bootstrap)
        self.call(self.client.open())

    def call(self, coroutine: Coroutine[object, object, _T]) -> _T:
        """Run this in the loop, wait, and return what it returns, or raise what it raises.

        An interrupt of the caller (a task that Spark kills) cancels it.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncGenerator[_T]) -> Iterator[_T]:
        """Return what comes, one by one, as it is asked for; closed when this is."""
        try:
            while (item := self.call(_next(items))) is not None:
                yield item
        finally:
            self.call(items.aclose())


def connect(bootstrap: str) -> Connection:
    """Return this process's connection to a cluster."""
    return _connection(bootstrap, os.getpid())


async def _next(items: AsyncGenerator[_T]) -> _T | None:
    return await anext(items, None)


@cache
def _connection(bootstrap: str, process: int) -> Connection:
    return Connection(bootstrap, _loop(process))


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Return the loop of a process: one that was forked needs its own."""
    loop = asyncio.new_event_loop()
    name = f"semel-{process}"
    threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
    return loop
