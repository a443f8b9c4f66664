"""The download of a key set: one answer of one URL, whole or not at all, within one time limit.

The time limit of a socket holds for one read. A server that sends a byte from time to time would
prolong the download for ever, and the old keys with it. So a timer ends the connection.
"""

import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Timer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from semel_common.addresses import is_loopback

SIZE_MAX_BYTES = 1 << 20


def download(url: str, *, timeout_s: float) -> bytes:
    """Return the answer of a URL, at most SIZE_MAX_BYTES of it. Blocks. Raises OSError."""
    direct = is_loopback(urlsplit(url).hostname or "")
    proxies = urllib.request.ProxyHandler({} if direct else None)
    with _TimeLimit(timeout_s) as limit:
        opener = urllib.request.build_opener(
            _StayHandler, proxies, _HttpHandler(limit), _HttpsHandler(limit)
        )
        try:
            with opener.open(url, timeout=timeout_s) as answer:
                content: bytes = answer.read(SIZE_MAX_BYTES)
        except urllib.error.HTTPError as error:
            error.close()  # It holds the connection.
            raise
        except HTTPException as error:
            raise OSError(f"{type(error).__name__} instead of an answer") from error
        limit.check()
    return content


class _TimeLimit:
    """Ends the connections of one download when its time is over."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._connections: list[socket.socket] = []
        self._is_over = False
        self._timer = Timer(timeout_s, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._timer.join()
        for connection in self._connections:
            connection.close()

    def connect(
        self,
        address: tuple[str, int],
        timeout: float | None,
        source_address: tuple[str, int] | None,
    ) -> socket.socket:
        """Connect as ``socket.create_connection`` does, until the time is over."""
        connection = socket.create_connection(address, timeout, source_address)
        # TLS takes the socket over, and leaves this one without the connection: hence a second one.
        self._connections.append(connection.dup())
        if self._is_over:
            connection.close()
        self.check()
        return connection

    def check(self) -> None:
        """Raise TimeoutError if the time is over: the answer may have been cut off."""
        if self._is_over:
            raise TimeoutError(f"the answer was not whole after {self._timeout_s:g} s")

    def _end(self) -> None:
        self._is_over = True
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # The server has ended it already.


def _connection(
    make: Callable[..., HTTPConnection], limit: _TimeLimit, host: str, **options: object
) -> HTTPConnection:
    """Make a connection that the limit ends; http.client has no other place for this."""
    connection = make(host, **options)
    setattr(connection, "_create_connection", limit.connect)  # noqa: B010 - it is not in the stubs
    return connection


class _HttpHandler(urllib.request.HTTPHandler):
    def __init__(self, limit: _TimeLimit) -> None:
        super().__init__()
        self._limit = limit

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPConnection, self._limit), req)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def __init__(self, limit: _TimeLimit) -> None:
        super().__init__()
        self._limit = limit

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPSConnection, self._limit), req)


class _StayHandler(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the settings alone say where keys come from."""

    def redirect_request(self, *_: object) -> None:
        """Treat the redirect as an error."""
