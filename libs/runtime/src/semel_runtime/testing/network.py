"""A network in memory: handlers at addresses, calls between them, and faults that a test decides.

Requests and answers are serialized on the way, as on a real wire: both sides share no message.
Every call runs its handler in a task of its own, so a caller that stops waiting does not stop it;
that is what a lost answer looks like.
"""

import asyncio
from collections.abc import Callable
from enum import Enum, auto

from google.protobuf.message import Message

from semel_common.errors import NetworkExceptionError, RequestTimedOutError
from semel_common.wire.messages.message_pieces import Outgoing, message_of
from semel_common.wire.methods import Method, Req, Res
from semel_runtime.authentication.principal import ANONYMOUS, Origin, Principal
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.handler_call import answer


class Fault(Enum):
    """What the network does to one call."""

    NONE = auto()
    LOSE_REQUEST = auto()
    """The handler never sees it; the caller gets NetworkExceptionError."""
    LOSE_REPLY = auto()
    """The handler runs to its end; the caller gets NetworkExceptionError."""
    DROP_REPLY = auto()
    """The handler runs to its end; the caller gets RequestTimedOutError at the end of its time."""
    REPEAT = auto()
    """The handler sees it twice; the caller gets the second answer."""


AnyMethod = Method[Message, Message]
Decide = Callable[[str, AnyMethod, Message], Fault]


def faulty(method: AnyMethod, fault: Fault, times: int) -> Decide:
    """Return what does this to the first calls of a method, and nothing to any other call."""
    left = times

    def decide(_address: str, asked: AnyMethod, _request: Message) -> Fault:
        nonlocal left
        if asked.path != method.path or left == 0:
            return Fault.NONE
        left -= 1
        return fault

    return decide


class MemoryNetwork:
    """All addresses of a test's cluster."""

    def __init__(self) -> None:
        """Start without anybody, and without faults."""
        self._handlers: dict[str, Handlers] = {}
        self._tasks: set[asyncio.Task[Message]] = set()
        self.decide: Decide = lambda _address, _method, _request: Fault.NONE
        """Asked for each call by address, method and request: what to do to it."""

    def serve(self, address: str, handlers: Handlers) -> None:
        """Put handlers at an address, in place of the earlier ones."""
        self._handlers[address] = handlers

    def cut(self, address: str) -> None:
        """Remove the handlers of an address."""
        self._handlers.pop(address, None)

    def connect(self, address: str) -> "MemoryConnection":
        """Return a connection to an address; see ``Connector``."""
        return MemoryConnection(self, address, ANONYMOUS)

    def of(self, principal: Principal) -> "MemoryConnector":
        """Return what connects as this principal, as if it had proven to be it."""
        return MemoryConnector(self, principal)

    async def close(self) -> None:
        """Stop the handlers that still run."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def deliver(
        self,
        address: str,
        method: Method[Req, Res],
        request: Req,
        timeout_ms: int,
        traceparent: str = "",
        principal: Principal = ANONYMOUS,
        cluster_id: str = "",
    ) -> Res:
        """Carry one call; see ``Connection.call``."""
        fault = self.decide(address, method, request)
        begun_at = asyncio.get_running_loop().time()
        await asyncio.sleep(0)
        if fault is Fault.LOSE_REQUEST:
            raise NetworkExceptionError(f"request to {address} was lost")
        if address in self._handlers:
            self._handlers[address].check_cluster(cluster_id)
        if fault is Fault.REPEAT:
            task = self._start(address, method, request, timeout_ms, traceparent, principal)
            await self._wait(task, address, timeout_ms)
        task = self._start(address, method, request, timeout_ms, traceparent, principal)
        response = await self._wait(task, address, timeout_ms)
        if fault is Fault.LOSE_REPLY:
            raise NetworkExceptionError(f"answer from {address} was lost")
        if fault is Fault.DROP_REPLY:
            waited_s = asyncio.get_running_loop().time() - begun_at
            await asyncio.sleep(timeout_ms / 1000 - waited_s)
            raise RequestTimedOutError(f"{address} did not answer in {timeout_ms} ms")
        return method.response.FromString(response.SerializeToString())

    def _start(
        self,
        address: str,
        method: Method[Req, Res],
        request: Req,
        timeout_ms: int,
        traceparent: str,
        principal: Principal,
    ) -> "asyncio.Task[Message]":
        handlers = self._handlers.get(address)
        endpoint = None if handlers is None else handlers.find(method.path)
        if endpoint is None:
            raise NetworkExceptionError(f"no service answers at {address}")
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        copy = method.request.FromString(request.SerializeToString())
        origin = Origin(listener="default", principal=principal)
        call = Call(origin=origin, deadline=deadline, traceparent=traceparent)
        task = asyncio.create_task(answer(endpoint, copy, call), name=f"{method.name} at {address}")
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def _wait(self, task: "asyncio.Task[Message]", address: str, timeout_ms: int) -> Message:
        done, _ = await asyncio.wait((task,), timeout=timeout_ms / 1000)
        if not done:
            raise RequestTimedOutError(f"{address} did not answer in {timeout_ms} ms")
        if task.cancelled():
            raise NetworkExceptionError(f"{address} went away")
        return task.result()

    def _done(self, task: "asyncio.Task[Message]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Seen by the caller, if it still waits.


class MemoryConnector:
    """Connects as one principal. Implements ``Connector``."""

    def __init__(self, network: MemoryNetwork, principal: Principal) -> None:
        """Do no more than remember."""
        self._network = network
        self._principal = principal

    def connect(self, address: str) -> "MemoryConnection":
        """Return a connection to an address."""
        return MemoryConnection(self._network, address, self._principal)

    async def close(self) -> None:
        """Close nothing: the network is everybody's."""


class MemoryConnection:
    """Calls to one address of a MemoryNetwork. Implements ``Connection``."""

    def __init__(self, network: MemoryNetwork, address: str, principal: Principal) -> None:
        """Do no more than remember."""
        self._network = network
        self._address = address
        self._principal = principal

    async def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
        cluster_id: str = "",
    ) -> Res:
        """Make one call; see ``Connection.call``."""
        return await self._network.deliver(
            self._address,
            method,
            message_of(method, request),
            timeout_ms,
            traceparent,
            self._principal,
            cluster_id,
        )
