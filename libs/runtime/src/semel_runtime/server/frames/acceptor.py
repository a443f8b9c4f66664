"""Accepting connections, with their address known before anything is done for them.

asyncio's own servers make a protocol, and begin a TLS handshake, for whatever connects.
"""

import asyncio
import socket
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)

_AT_ONCE = 64
"""Connections that are accepted before others have their turn on the event loop."""
_PAUSE_S = 1.0
"""How long to wait when the process has no file descriptor, or no memory, for another one."""


class Acceptor:
    """Accepts at one socket until it is closed. Made inside a running event loop."""

    def __init__(self, bound: socket.socket, receive: Callable[[socket.socket], None]) -> None:
        """Begin; each connection is given to ``receive``, which must not fail."""
        self._bound = bound
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._closed = False
        bound.setblocking(False)
        bound.listen(socket.SOMAXCONN)
        self._loop.add_reader(bound, self._accept)

    def close(self) -> None:
        """Accept no more. What the kernel has accepted meanwhile ends with the socket."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._bound)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._bound.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            connection.setblocking(False)
            self._receive(connection)

    def _pause(self, error: OSError) -> None:
        """Leave clients in the kernel's queue for a while: accepting would fail at every turn."""
        log.warning("no connection for frames can be accepted", error=error.strerror)
        self._loop.remove_reader(self._bound)
        self._loop.call_later(_PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._bound, self._accept)
