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
from typing import TypeAlias, TypeVar

from aiosemel import ClientOptions, Security, SemelClient
from aiosemel.memory import keep_freed_memory
from pyspark_semel.settings import telemetry

_T = TypeVar("_T")
_Items = TypeVar("_Items", bound=Sized)


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
        self.has_answered = False
        """Whether a cluster has answered here before."""
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

        The first step runs at once, and the next one while the caller works on the result of the
        last one.
        """
        return self._ahead(self.start(step()), step)

    def _ahead(
        self, future: "Future[_Items]", step: Callable[[], Coroutine[object, object, _Items]]
    ) -> Iterator[_Items]:
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
    bootstrap: str,
    *,
    api_timeout_ms: int,
    security: Security | None = None,
    cluster_id: str | None = None,
) -> Connection:
    """Return this process's connection to a cluster; each task asks for it.

    ``cluster_id``: no other cluster may answer. None: the cluster that answers first.
    """
    _keep_from_collector(len(sys.modules))
    key = (bootstrap, api_timeout_ms, security, cluster_id, os.getpid())
    if key not in _connections:
        keep_freed_memory()
        options = ClientOptions(default_api_timeout_ms=api_timeout_ms, cluster_id=cluster_id)
        _connections[key] = Connection(bootstrap, _loop(os.getpid()), options, security)
    return _connections[key]


def forget(connection: Connection) -> None:
    """Close a connection to a cluster that is another one now; the next caller gets a new one."""
    for key, known in list(_connections.items()):
        if known is connection:
            del _connections[key]
    connection.call(connection.client.close())


_Key: TypeAlias = tuple[str, int, Security | None, str | None, int]
_connections: dict[_Key, Connection] = {}


def _result(future: "Future[_T]") -> _T:
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def _keep_from_collector(_modules: int) -> None:
    """Let the garbage collector leave out what there is now: all that was imported.

    Spark has its processes look for garbage after each task. A walk through all objects, tens of
    milliseconds in each of them, is a large part of the work of a small micro-batch. A first task
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
