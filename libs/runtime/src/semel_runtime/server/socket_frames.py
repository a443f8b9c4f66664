"""Frames over connections of their own: who asked by gRPC is let in, once, with a ticket.

Anybody can connect. Until a ticket is shown, a connection is a visitor, and costs next to nothing:
no more is taken of it than a ticket, and there are only so many visitors at a time.
"""

import asyncio
import secrets
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import structlog
from google.protobuf.message import DecodeError

from semel.common.v1.frames_pb2 import FramesPreface, OpenFramesResponse
from semel_common.errors import SemelError, ThrottlingQuotaExceededError
from semel_common.wire.pipe import Pipe
from semel_common.wire.socket_pipe import SocketOptions, SocketPipe
from semel_runtime.cluster.image import Listener
from semel_runtime.server.frames import FrameSession
from semel_runtime.server.limits import ServerLimits
from semel_runtime.server.seldom import Seldom
from semel_runtime.server.tls import ServerTls

log = structlog.get_logger(__name__)

TICKET_BYTES = 16
PREFACE_MAX_BYTES = 256
"""The largest first message; a preface has 18 bytes today."""
TICKET_LIFE_S = 10.0
"""How long a ticket is good for, and how long a connection may take to show one."""

_UNTIL_ADMITTED = SocketOptions(message_size_max_bytes=PREFACE_MAX_BYTES)

SessionOn = Callable[[Pipe], FrameSession]
"""Opens the session that a ticket is for. Raises ThrottlingQuotaExceededError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a listener takes frames."""

    bound: socket.socket
    advertised: Listener
    tls: ServerTls | None


class _Encrypted(TypedDict, total=False):
    """What a socket with TLS is served with; asyncio refuses a time-out without a context."""

    ssl: ssl.SSLContext
    ssl_handshake_timeout: float


class FrameSockets:
    """The ports at which a server takes frames, one for each listener."""

    def __init__(self, limits: ServerLimits) -> None:
        """Do no I/O yet."""
        self._limits = limits
        self._places: dict[str, _Place] = {}
        self._servers: list[asyncio.Server] = []
        self._tickets: dict[bytes, SessionOn] = {}
        self._visitors: dict[_Visitor, None] = {}
        """In the order of their arrival."""
        self._refused = Seldom()

    def bind(
        self,
        listener: Listener,
        advertised: Listener | None = None,
        tls: ServerTls | None = None,
    ) -> None:
        """Bind the port of a listener. Raises OSError.

        Clients are sent to ``advertised``; without, to this port at the host that they know.
        """
        family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
        bound = socket.create_server((listener.host, listener.port), family=family)
        port: int = bound.getsockname()[1]
        told = advertised or Listener(name=listener.name, host="", port=port)
        self._places[listener.name] = _Place(bound=bound, advertised=told, tls=tls)

    async def start(self) -> None:
        """Let clients in."""
        loop = asyncio.get_running_loop()
        for place in self._places.values():
            encrypted: _Encrypted = {}
            if place.tls is not None:
                encrypted["ssl"] = place.tls.ssl_context()
                encrypted["ssl_handshake_timeout"] = TICKET_LIFE_S
            server = await loop.create_server(self._visitor, sock=place.bound, **encrypted)
            self._servers.append(server)

    def offer(self, listener: str, session_on: SessionOn) -> OpenFramesResponse:
        """Return where to connect to, with a ticket for this session; no port if there is none."""
        place = self._places.get(listener)
        if place is None:
            return OpenFramesResponse()
        ticket = secrets.token_bytes(TICKET_BYTES)
        self._tickets[ticket] = session_on
        asyncio.get_running_loop().call_later(TICKET_LIFE_S, self._tickets.pop, ticket, None)
        return OpenFramesResponse(
            host=place.advertised.host, port=place.advertised.port, ticket=ticket
        )

    async def close(self) -> None:
        """Let nobody in any more, nor those who have not shown a ticket yet."""
        self._tickets.clear()  # Who is on the way to us, such as in a TLS handshake, may show one.
        await self._stop_accepting()
        for server in self._servers:
            server.close()
        for place in self._places.values():
            place.bound.close()
        for visitor in tuple(self._visitors):
            visitor.send_away()

    async def _stop_accepting(self) -> None:
        """Leave who knocks outside, and wait until who was let in is a visitor.

        asyncio's ``Server.close`` loses a connection that was accepted just before, and never
        closes it (python/cpython#109564); uvloop's does not, and has no such reader.
        """
        loop = asyncio.get_running_loop()
        for place in self._places.values():
            if place.bound.fileno() >= 0:
                loop.remove_reader(place.bound)
        await asyncio.sleep(0)

    def _visitor(self) -> SocketPipe:
        if len(self._visitors) >= self._limits.visitors_max:
            # Whoever has a ticket shows it at once: the one who has waited longest has none.
            self.refuse(next(iter(self._visitors)), "is one of too many without a ticket")
        visitor = _Visitor(self)
        self._visitors[visitor] = None
        return visitor.pipe

    # -- visitors --------------------------------------------------------------------------------

    def admit(self, visitor: "_Visitor", ticket: bytes) -> None:
        """Let in who has this ticket: from here on, the pipe is its session's."""
        session_on = self._tickets.pop(ticket, None)
        if session_on is None:
            self.refuse(visitor, "shows a ticket that is not good, or not any more")
            return
        try:
            session = session_on(visitor.pipe)
        except ThrottlingQuotaExceededError:
            self.refuse(visitor, "is one too many")
            return
        visitor.pipe.hand_over(session, self._limits.message_size_max_bytes)

    def refuse(self, visitor: "_Visitor", what: str) -> None:
        """Send it away."""
        visitor.send_away()
        if count := self._refused.count():
            log.warning("a connection for frames is refused", client=what, count=count)

    def forget(self, visitor: "_Visitor") -> None:
        """Know that it is none any more."""
        self._visitors.pop(visitor, None)


class _Visitor:
    """A connection that has not shown its ticket yet. Uses a pipe: see ``PipeUser``."""

    def __init__(self, host: FrameSockets) -> None:
        """Have it sent away if it shows nothing."""
        self._host = host
        self._impatience = asyncio.get_running_loop().call_later(
            TICKET_LIFE_S, host.refuse, self, "shows no ticket"
        )
        self.pipe = SocketPipe(self, "a client", _UNTIL_ADMITTED)

    def send_away(self) -> None:
        """End the connection."""
        self._leave()
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

    def _leave(self) -> None:
        self._host.forget(self)
        self._impatience.cancel()
