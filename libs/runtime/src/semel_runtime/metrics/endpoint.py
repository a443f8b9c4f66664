"""Where Prometheus asks: a small HTTP server, one request for each connection.

It has no authentication, so everything that a caller can make it do has a bound: connections, time
and size of a request, the time to take the answer, and how many answers are made at a time. A
caller that sends half a request holds one connection for seconds, and loses it before that if the
place is needed. `prometheus_client` makes the answers, in a thread.
"""

import asyncio
import http.client
import io
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

import structlog
from prometheus_client import make_wsgi_app

from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.metrics.registry import Metrics

_READ_BYTES = 65_536

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointLimits:
    """What callers of the metrics endpoint may take."""

    connections_max: int = 32
    """Connections at once. For one more, the oldest is ended that has not sent its request yet."""
    request_bytes_max: int = 8_192
    """Bytes of a request line and its headers."""
    request_timeout_ms: int = 5_000
    """How long a request may take to arrive."""
    answer_timeout_ms: int = 20_000
    """How long an answer may take to be made, and to be taken by its caller."""
    answers_max: int = 2
    """Answers that are made at a time; others wait for their turn."""


class _Answer(NamedTuple):
    status: str
    headers: Iterable[tuple[str, str]]
    body: bytes

    def head(self) -> bytes:
        """Return what comes before the body on the wire."""
        headers = (*self.headers, ("Content-Length", str(len(self.body))), ("Connection", "close"))
        lines = (f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in headers))
        return "\r\n".join((*lines, "", "")).encode("latin-1")


class MetricsEndpoint:
    """Answers Prometheus. Made by `metrics_endpoint`."""

    def __init__(self, metrics: Metrics, limits: EndpointLimits) -> None:
        self._application = make_wsgi_app(metrics.registry)
        self._limits = limits
        self._turns = asyncio.Semaphore(limits.answers_max)
        self._connections: set[asyncio.Task[None]] = set()
        self._asking: dict[asyncio.StreamWriter, None] = {}
        """Connections that have not sent their request yet, the oldest first."""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, or end the connection."""
        task = asyncio.current_task()
        assert task is not None
        if not self._make_room():
            writer.transport.abort()
            return
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            self._asking.pop(writer, None)
            self._connections.discard(task)
            writer.close()

    async def close(self) -> None:
        """End all connections."""
        connections = set(self._connections)
        for task in connections:
            task.cancel()
        if connections:
            await asyncio.wait(connections)

    def _make_room(self) -> bool:
        if len(self._connections) < self._limits.connections_max:
            return True
        for oldest in self._asking:
            oldest.transport.abort()
            del self._asking[oldest]
            return True
        return False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asking[writer] = None
        async with asyncio.timeout(self._limits.request_timeout_ms / 1000):
            head = await _head(reader)
        self._asking.pop(writer, None)
        async with asyncio.timeout(self._limits.answer_timeout_ms / 1000):
            async with self._turns:
                answer = await asyncio.to_thread(self._answer, head)
            writer.writelines((answer.head(), answer.body))
            await writer.drain()
            writer.write_eof()
            # To close a connection before all of the request is read may lose the answer.
            while await reader.read(_READ_BYTES):
                pass

    def _answer(self, head: bytes) -> _Answer:
        if not head:
            return _Answer("431 Request Header Fields Too Large", (), b"")
        try:
            environment = _environment(head)
        except (ValueError, http.client.HTTPException):
            return _Answer("400 Bad Request", (), b"")
        begun: list[tuple[str, Iterable[tuple[str, str]]]] = []
        body = b"".join(
            self._application(
                environment, lambda status, headers, *_: begun.append((status, headers))
            )
        )
        (status, headers) = begun[0]
        return _Answer(status, headers, body)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Read a request line and headers; empty if they are too long. Raises IncompleteReadError."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return b""


def _environment(head: bytes) -> dict[str, str]:
    """Return what WSGI tells of a request, as far as metrics ask for it. Raises ValueError."""
    lines = io.BytesIO(head)
    method, target, version = lines.readline().decode("latin-1").split()
    if not version.startswith("HTTP/1."):
        raise ValueError(version)
    headers = http.client.parse_headers(lines)
    parts = urlsplit(target)
    return {
        "REQUEST_METHOD": method,
        "PATH_INFO": parts.path,
        "QUERY_STRING": parts.query,
        "HTTP_ACCEPT": headers.get("Accept", ""),
        "HTTP_ACCEPT_ENCODING": headers.get("Accept-Encoding", ""),
    }


@asynccontextmanager
async def metrics_endpoint(
    listener: Listener, metrics: Metrics, limits: EndpointLimits | None = None
) -> AsyncIterator[int]:
    """Serve metrics at ``/metrics``; gives the port. Raises OSError."""
    limits = limits or EndpointLimits()
    endpoint = MetricsEndpoint(metrics, limits)
    try:
        server = await asyncio.start_server(
            endpoint.connected,
            listener.host,
            listener.port,
            limit=limits.request_bytes_max,
            family=socket.AF_UNSPEC,
        )
    except OSError as error:
        raise OSError(f"cannot serve metrics on {listener.address}: {error.strerror}") from error
    port = int(server.sockets[0].getsockname()[1])
    log.info("metrics are served", address=listener.host, port=port)
    try:
        yield port
    finally:
        server.close()
        await endpoint.close()
