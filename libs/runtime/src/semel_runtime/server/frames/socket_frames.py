"""Frames over connections of their own: a client that asked by gRPC gets in once, with a ticket.

Anybody can connect. Until a ticket is shown, a connection is a visitor, and costs next to nothing:
no more is taken of it than a ticket, and there are only so many visitors at a time, in all and of
one address. A ticket counts only at the listener that gave it, and where certificates name
callers, only together with a certificate of the caller that it was given to.
"""

import asyncio
import secrets
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import structlog
from msgspec.structs import replace

from semel.common.v1.frames_pb2 import OpenFramesResponse
from semel_common.errors import SaslAuthenticationError, ThrottlingQuotaExceededError
from semel_common.wire.frames.pipe import Pipe
from semel_common.wire.frames.socket_pipe import SocketOptions
from semel_runtime.authentication.listener_gate import Gate
from semel_runtime.authentication.principal import Origin
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.logs.log_rate_limit import Seldom
from semel_runtime.server.frames.acceptor import Acceptor
from semel_runtime.server.frames.frame_session import FrameSession
from semel_runtime.server.limits.caller_shares import Ledger, host_of_address
from semel_runtime.server.limits.server_limits import ServerLimits
from semel_runtime.server.limits.stream_budget import ArrivalRoom
from semel_runtime.server.limits.unproven_connections import Visitor, Visitors

log = structlog.get_logger(__name__)

TICKET_BYTES = 16

SessionOn = Callable[[Origin, Pipe], FrameSession]
"""Opens a session of a caller. Raises ThrottlingQuotaExceededError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a listener takes frames."""

    bound: socket.socket
    advertised: Listener
    gate: Gate


class _Ticket(NamedTuple):
    """Whose it is, and which session it opens."""

    origin: Origin
    session_on: SessionOn


class FrameSockets:
    """The ports at which a server takes frames, one for each listener."""

    def __init__(self, limits: ServerLimits, ledger: Ledger) -> None:
        """Do no I/O yet."""
        self._limits = limits
        self._admitted = SocketOptions(
            message_size_max_bytes=limits.message_size_max_bytes,
            arrival_max_s=limits.arrival_timeout_ms / 1000,
        )
        self._ledger = ledger
        self._places: dict[str, _Place] = {}
        self._acceptors: list[Acceptor] = []
        self._tickets: dict[bytes, _Ticket] = {}
        self._visitors = Visitors(limits)
        self._arriving: set[asyncio.Task[None]] = set()
        self._refused = Seldom()

    def bind(self, listener: Listener, advertised: Listener | None, gate: Gate) -> None:
        """Bind the port of a listener. Raises OSError.

        Clients are sent to ``advertised``; without, to this port at the host that they know.
        """
        family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
        bound = socket.create_server((listener.host, listener.port), family=family)
        # Connections inherit it. Without it, a frame may wait 40 ms for the receipt of the last.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port: int = bound.getsockname()[1]
        told = advertised or Listener(name=listener.name, host="", port=port)
        self._places[listener.name] = _Place(bound=bound, advertised=told, gate=gate)

    def start(self) -> None:
        """Let clients in."""
        for name, place in self._places.items():
            tls = None if place.gate.tls is None else place.gate.tls.ssl_context()
            self._acceptors.append(Acceptor(place.bound, partial(self._receive, name, tls)))

    def offer(self, origin: Origin, session_on: SessionOn) -> OpenFramesResponse:
        """Return where to connect to, with a ticket for a session; no port if there is none."""
        place = self._places.get(origin.listener)
        if place is None:
            return OpenFramesResponse()
        ticket = secrets.token_bytes(TICKET_BYTES)
        self._tickets[ticket] = _Ticket(origin, session_on)
        asyncio.get_running_loop().call_later(
            self._limits.handshake_timeout_ms / 1000, self._tickets.pop, ticket, None
        )
        return OpenFramesResponse(
            host=place.advertised.host, port=place.advertised.port, ticket=ticket
        )

    async def close(self) -> None:
        """Let no client in any more, and end the connections without a ticket."""
        self._tickets.clear()  # A client in its TLS handshake could still show one.
        for acceptor in self._acceptors:
            acceptor.close()
        for place in self._places.values():
            place.bound.close()
        for visitor in self._visitors:
            visitor.send_away()
        if self._arriving:
            await asyncio.wait(self._arriving)

    # -- Host --------------------------------------------------------------------------------------

    def admit(self, visitor: Visitor, ticket: bytes) -> None:
        """Let in a visitor that has a ticket: from here on, the pipe is its session's."""
        found = self._tickets.get(ticket)
        if found is None or found.origin.listener != visitor.listener:
            self.refuse(visitor, "shows a ticket that is not good here, or not any more")
            return
        del self._tickets[ticket]
        origin, pipe = found.origin, visitor.pipe
        if origin.host:
            origin = replace(origin, host=visitor.address)
        try:
            self._places[visitor.listener].gate.check_certificate(origin, pipe.peer_certificate())
            session = found.session_on(origin, pipe)
        except SaslAuthenticationError as error:
            self.refuse(visitor, error.message)
        except ThrottlingQuotaExceededError:
            self.refuse(visitor, "is one too many")
        else:
            room = ArrivalRoom(self._ledger.of(origin))
            pipe.hand_over(session, self._admitted, room)

    def refuse(self, visitor: Visitor, what: str) -> None:
        """Send a visitor away."""
        visitor.send_away()
        if count := self._refused.count():
            log.warning("a connection for frames is refused", client=what, count=count)

    # -- connections -------------------------------------------------------------------------------

    def _receive(
        self, listener: str, tls: ssl.SSLContext | None, connection: socket.socket
    ) -> None:
        """Take up a connection that was accepted."""
        try:
            address = host_of_address(connection.getpeername()[0])
        except OSError:
            connection.close()  # It is gone already.
            return
        surplus = self._visitors.surplus(address)
        if surplus is not None:
            self.refuse(surplus, "is one of too many without a ticket")
        visitor = Visitor(
            self,
            listener=listener,
            address=address,
            timeout_ms=self._limits.handshake_timeout_ms,
            left=self._visitors.remove,
        )
        self._visitors.add(visitor)
        task = visitor.arrive(connection, tls)
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)
