"""The thread that writes and syncs a log, one append after the other."""

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias

_Item: TypeAlias = tuple[Callable[[], float], "asyncio.Future[float]"] | None


class LogThread:
    """Runs work in order. Its future is done in the event loop that has asked for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._thread = Thread(target=self._run, name="journal-log", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], float]) -> "asyncio.Future[float]":
        """Let the thread do some work; the future has its result, or what it raised."""
        future: asyncio.Future[float] = self._loop.create_future()
        self._queue.put((work, future))
        return future

    async def close(self) -> None:
        """End the thread, after all that it has to do."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, future = item
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - the future has it
                self._loop.call_soon_threadsafe(_fail, future, error)
            else:
                self._loop.call_soon_threadsafe(_finish, future, result)


def _finish(future: "asyncio.Future[float]", result: float) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[float]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
