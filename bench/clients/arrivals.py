"""When records arrive: told by a thread that polls for them, to the one that waits for them."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event

_TIMEOUT_S = 60.0


@contextmanager
def arrivals(poll: Callable[[], bool]) -> Iterator[Callable[[], float]]:
    """Poll for records, one at a time; yields what waits for the next, and says when it arrived.

    ``poll`` returns whether there was one, within less than a second. Its errors reach the waiting
    caller at once; queue.Empty if nothing comes for a minute.
    """
    told: SimpleQueue[float | Exception] = SimpleQueue()
    stop = Event()

    def work() -> None:
        try:
            while not stop.is_set():
                if poll():
                    told.put(time.perf_counter())
        except Exception as error:
            told.put(error)
            raise

    def wait() -> float:
        item = told.get(timeout=_TIMEOUT_S)
        if isinstance(item, Exception):
            raise item
        return item

    with ThreadPoolExecutor(1) as thread:
        polling = thread.submit(work)
        try:
            yield wait
        finally:
            stop.set()
        polling.result()
