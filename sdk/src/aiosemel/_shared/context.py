"""The parts that a client shares with the objects that it makes."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Protocol

from opentelemetry.trace import Tracer

from aiosemel._cluster.routes import Cluster
from aiosemel.types.client_names import new_name


class Clock(Protocol):
    """Tells the time of day; timestamps of records come from it."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC."""
        ...


class Closable(Protocol):
    """An object that a client closes with itself."""

    async def close(self) -> None:
        """Finish what can be finished, and stop. May be called twice: the second waits as well."""
        ...


class Spawn(Protocol):
    """Starts a task that the client owns: cancelled, and awaited, when the client is closed.

    The task must not raise: its exception is logged, and no caller sees it. Raises ClosedError when
    the client is not open.
    """

    def __call__(self, run: Coroutine[None, None, None], *, name: str) -> asyncio.Task[None]:
        """Start a task."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts of a client that its producers and consumers work with."""

    cluster: Cluster
    clock: Clock
    random: Random
    spawn: Spawn
    tracer: Tracer | None = None
    """Makes spans; None: tracing is off."""
    forget: Callable[[Closable], None]
    """Tell the client that something is closed already."""

    def new_name(self) -> str:
        """Return a name that no other producer and member has: the client's id, and chance."""
        return new_name(self.cluster.options.client_id, self.random.getrandbits(128))
