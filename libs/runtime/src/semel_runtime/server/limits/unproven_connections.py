"""Connections that have not shown their ticket yet, and how many of them there may be."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Protocol

import structlog
from google.protobuf.message import DecodeError

from semel.common.v1.frames_pb2 import FramesPreface
from semel_common.errors import SemelError
from semel_common.wire.frames.socket_pipe import SocketOptions, SocketPipe
from semel_runtime.server.limits.server_limits import ServerLimits

log = structlog.get_logger(__name__)

PREFACE_MAX_BYTES = 256
"""The largest first message; a preface has 18 bytes today."""

_UNTIL_ADMITTED = SocketOptions(message_size_max_bytes=PREFACE_MAX_BYTES)


class Host(Protocol):
    """What decides about visitors."""

    def admit(self, visitor: "Visitor", ticket: bytes) -> None:
        """Let in a visitor that shows a ticket, or send it away."""
        ...

    def refuse(self, visitor: "Visitor", what: str) -> None:
        """Send a visitor away; ``what`` it did is for the log."""
        ...


class Visitor:
    """A connection until its ticket, the TLS handshake included. Uses a pipe: see ``PipeUser``."""

    def __init__(
        self,
        host: Host,
        *,
        listener: str,
        address: str,
        timeout_ms: int,
        left: Callable[["Visitor"], None],
    ) -> None:
        """Have it sent away if it shows nothing in time; ``left`` is told when it is no visitor."""
        self.listener = listener
        self.address = address
        self.pipe = SocketPipe(self, "a client", _UNTIL_ADMITTED)
        self._host = host
        self._timeout_ms = timeout_ms
        self._left = left
        self._arriving: asyncio.Task[None] | None = None
        self._impatience = asyncio.get_running_loop().call_later(
            timeout_ms / 1000, host.refuse, self, "shows no ticket"
        )

    def arrive(self, connection: socket.socket, tls: ssl.SSLContext | None) -> "asyncio.Task[None]":
        """Begin: serve an accepted connection, after its TLS handshake if there is one."""
        self._arriving = asyncio.create_task(
            self._serve(connection, tls), name="visitor of the port for frames"
        )
        self._arriving.add_done_callback(lambda task: _close_unserved(task, connection))
        return self._arriving

    def send_away(self) -> None:
        """End the connection."""
        self._leave()
        if self._arriving is not None:
            self._arriving.cancel()
        self.pipe.abort()

    def received(self, message: bytes | bytearray) -> None:
        """Show the ticket."""
        self._leave()
        try:
            ticket = FramesPreface.FromString(bytes(message)).ticket
        except DecodeError:
            self._host.refuse(self, "is no client of ours")
            return
        self._host.admit(self, ticket)

    def written(self) -> None:
        """Nothing was written."""

    def lost(self, error: SemelError) -> None:  # noqa: ARG002 - a pipe tells why
        """Wait no longer."""
        self._leave()

    async def _serve(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        timeout_s = None if tls is None else self._timeout_ms / 1000
        try:
            await loop.connect_accepted_socket(
                lambda: self.pipe, connection, ssl=tls, ssl_handshake_timeout=timeout_s
            )
        except OSError as error:  # Of which SSLError, TimeoutError and ConnectionError are some.
            log.debug("a connection for frames did not come about", error=str(error))
            self._leave()

    def _leave(self) -> None:
        self._left(self)
        self._impatience.cancel()


def _close_unserved(task: "asyncio.Task[None]", connection: socket.socket) -> None:
    """Close a connection whose task was cancelled before its first step.

    Later, the transport has taken the socket, and closing it here does nothing more.
    """
    if task.cancelled():
        connection.close()


class Visitors:
    """All visitors of a server."""

    def __init__(self, limits: ServerLimits) -> None:
        """Begin with none."""
        self._limits = limits
        self._of: dict[str, dict[Visitor, None]] = {}
        """By address, in the order of their arrival."""
        self._count = 0

    def __iter__(self) -> Iterator[Visitor]:
        """Iterate over all that are here now."""
        return iter([visitor for each in self._of.values() for visitor in each])

    def surplus(self, address: str) -> Visitor | None:
        """Return the visitor that has to leave before one more comes from an address, if any.

        A client that has a ticket shows it at once: the oldest visitor has none.
        """
        if len(self._of.get(address, ())) >= self._limits.visitors_per_address_max:
            return next(iter(self._of[address]))
        if self._count >= self._limits.visitors_max:
            largest = max(self._of, key=lambda address: len(self._of[address]))
            return next(iter(self._of[largest]))
        return None

    def add(self, visitor: Visitor) -> None:
        """Count one more."""
        self._of.setdefault(visitor.address, {})[visitor] = None
        self._count += 1

    def remove(self, visitor: Visitor) -> None:
        """Count one less, once."""
        here = self._of.get(visitor.address, {})
        if visitor in here:
            del here[visitor]
            self._count -= 1
            if not here:
                del self._of[visitor.address]
