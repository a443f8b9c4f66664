"""What a service gives the server: one handler for each RPC, whatever transport carries it."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias

from google.protobuf.message import Message
from msgspec import Struct

from semel_common.wire.cluster_header import check_cluster
from semel_common.wire.methods import Method, Req, Res
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.limits.list_turns import ListTurns

if TYPE_CHECKING:
    from semel_runtime.metrics.requests import MethodMetrics, RequestMetrics

ANSWER_MS = 20
"""How long before its caller's deadline a handler stops waiting, so that the answer gets there."""


class Written:
    """Callbacks for the moment when an answer has been written, or was dropped."""

    __slots__ = ("_callbacks",)

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_awaited(self) -> bool:
        """Whether anything is to happen."""
        return bool(self._callbacks)

    def add(self, callback: Callable[[], None]) -> None:
        """Call this then."""
        self._callbacks.append(callback)

    def settle(self) -> None:
        """Let it happen, once."""
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class Call(Struct, frozen=True, kw_only=True):
    """A call, without its request."""

    origin: Origin
    traceparent: str = ""
    """W3C trace context, or empty."""
    deadline: float | None = None
    """When the caller stops waiting, in event-loop time (seconds)."""

    written: Written | None = None
    """Of the transport; None: it takes the answer at once."""

    def when_written(self, callback: Callable[[], None]) -> None:
        """Call this once the answer has been written, and its memory is free, or never will be."""
        if self.written is None:
            callback()
        else:
            self.written.add(callback)

    def remaining_ms(self, default_ms: int) -> int:
        """Return how long to wait, so that the caller still gets the answer; at least 0.

        That is until its deadline, or until its token expires; ``default_ms`` if it has neither.
        """
        expires_at = self.origin.principal.expires_at
        left_s = math.inf
        if self.deadline is not None:
            left_s = self.deadline - asyncio.get_running_loop().time()
        if expires_at is not None:
            left_s = min(left_s, expires_at - time.time())
        if left_s == math.inf:
            return default_ms
        return max(0, int(left_s * 1000) - ANSWER_MS)


Handler: TypeAlias = Callable[[Req, Call], Awaitable[Res]]
"""Answers one request, or raises a SemelError."""


class Endpoint(Struct, Generic[Req, Res], frozen=True):
    """A method with its handler."""

    method: Method[Req, Res]
    handler: Callable[[Req, Call], Awaitable[Res]]
    metrics: "MethodMetrics | None" = None
    """None: nothing is counted."""
    guard: "Guards | None" = None
    """What stands in front of the handler; None: nothing."""
    turns: ListTurns | None = None
    """Of a list: its calls take turns with all lists of the process. None: the call is no list."""


class Guards(Protocol):
    """Answers requests by their handlers, if they may be answered."""

    async def answer(
        self, endpoint: Endpoint[Message, Message], request: Message, call: Call
    ) -> Message:
        """Answer a request, or raise why not."""
        ...


class Handlers:
    """The handlers of one process."""

    def __init__(
        self,
        metrics: "RequestMetrics | None" = None,
        guard: Guards | None = None,
        cluster_id: Callable[[], str] | None = None,
    ) -> None:
        """Start with none; ``metrics`` counts their requests, ``guard`` stands in front of all.

        ``cluster_id`` returns the cluster of the process, empty as long as it is not known; None:
        the process belongs to no cluster, and serves calls for all.
        """
        self._cluster_id = cluster_id
        self._guard = guard
        self._endpoints: dict[str, Endpoint[Message, Message]] = {}
        self._metrics = metrics
        self._turns = ListTurns()

    def add(
        self,
        method: Method[Req, Res],
        handler: Callable[[Req, Call], Awaitable[Res]],
        *,
        is_list: bool = False,
    ) -> None:
        """Register the handler of a method; each method has exactly one.

        A list may read many entries for a small request: lists take turns.
        """
        assert method.path not in self._endpoints, f"{method.path} has a handler already"
        counted = self._metrics
        metrics = None if counted is None else counted.of(method.service, method.name)
        turns = self._turns if is_list else None
        endpoint = Endpoint(method, handler, metrics, self._guard, turns)
        self._endpoints[method.path] = endpoint  # type: ignore[assignment]  # the path ties request and handler

    def check_cluster(self, named: str) -> None:
        """Raise what ``check_cluster`` raises for a call that names this cluster."""
        if self._cluster_id is not None:
            check_cluster(named, self._cluster_id())

    def wrap(
        self, wrapped: Callable[[Endpoint[Message, Message]], Endpoint[Message, Message]]
    ) -> None:
        """Put another endpoint, or the same, in the place of each."""
        self._endpoints = {path: wrapped(each) for path, each in self._endpoints.items()}

    def __iter__(self) -> Iterator[Endpoint[Message, Message]]:
        """Iterate over all endpoints in the order of their registration."""
        return iter(self._endpoints.values())

    def find(self, path: str) -> Endpoint[Message, Message] | None:
        """Return the endpoint of a unary path."""
        return self._endpoints.get(path)
