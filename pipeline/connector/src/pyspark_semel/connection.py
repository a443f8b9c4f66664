"""The client of this process, for code that Spark calls and that does not await.

Spark forks a process for its tasks, and uses it again for many of them: a process keeps one event
loop, in a thread of its own, and one client for each cluster. Objects that Spark pickles hold
options, never a connection.
"""

import asyncio
import gc
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sized
from concurrent.futures import Future
from functools import cache
from typing import TypeVar

from aiosemel import ClientOptions, Security, SemelClient
from aiosemel.memory import keep_freed_memory
from pyspark_semel.settings import telemetry

_T = TypeVar("_T")
_Items = TypeVar("_Items", bound=Sized)

API_TIMEOUT_MS = 60_000
"""How long a call to the cluster may take with all its attempts, unless an option says else."""


class Connection:
    """A client of one cluster, and the loop that it lives in."""

    def __init__(
        self,
        bootstrap: str,
        loop: asyncio.AbstractEventLoop,
        options: ClientOptions,
        security: Security | None = None,
    ) -> None:
        """Check the addresses; raises InvalidConfigError. Connects when it is first needed."""
        self._loop = loop
        traces = telemetry()
        provider = None if traces is None else traces.provider
        self.client = SemelClient(
            bootstrap, options=options, security=security, tracer_provider=provider
        )
        self.call(self.client.open())

    def call(self, coroutine: Coroutine[object, object, _T]) -> _T:
        """Run this in the loop, wait, and return what it returns, or raise what it raises.

        An interrupt of the caller (a task that Spark kills) cancels it.
        """
        return _result(self.start(coroutine))

    def ahead(self, step: Callable[[], Coroutine[object, object, _Items]]) -> Iterator[_Items]:
        """Return what one step after the other returns, until that is empty.

        The next step runs while the caller is busy with what the last one has returned.
        """
        future = self.start(step())
        try:
            while items := _result(future):
                future = self.start(step())
                yield items
        finally:
            future.cancel()

    def start(self, coroutine: Coroutine[object, object, _T]) -> "Future[_T]":
        """Run this in the loop, and wait for nothing."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)


def connect(
    bootstrap: str, *, api_timeout_ms: int = API_TIMEOUT_MS, security: Security | None = None
) -> Connection:
    """Return this process's connection to a cluster; each task asks for it."""
    connection = _connection(bootstrap, api_timeout_ms, security, os.getpid())
    _keep_from_collector(len(sys.modules))
    return connection


def _result(future: "Future[_T]") -> _T:
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def _connection(
    bootstrap: str, api_timeout_ms: int, security: Security | None, process: int
) -> Connection:
    keep_freed_memory()
    options = ClientOptions(default_api_timeout_ms=api_timeout_ms)
    return Connection(bootstrap, _loop(process), options, security)


@cache
def _keep_from_collector(_modules: int) -> None:
    """Let the garbage collector leave out what there is now: all that was imported.

    Spark has its processes look for garbage after each task. To walk everything, tens of
    milliseconds in each of them, is a large part of what a small micro-batch computes. A first task
    imports more while it runs (PyArrow looks for pandas with the first array that it makes), so it
    is done again when the number of modules is another one.
    """
    gc.collect()
    gc.freeze()


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Return the loop of a process: one that was forked needs its own."""
    loop = asyncio.new_event_loop()
    name = f"semel-{process}"
    threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
    return loop
