"""Where Prometheus asks: a small HTTP server in a thread of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Thread
from wsgiref.simple_server import WSGIServer

import structlog
from prometheus_client import start_http_server

from semel_runtime.cluster.image import Listener
from semel_runtime.metrics.metrics import Metrics

log = structlog.get_logger(__name__)


@asynccontextmanager
async def metrics_endpoint(listener: Listener, metrics: Metrics) -> AsyncIterator[int]:
    """Serve metrics at ``/metrics``; gives the port. Raises OSError."""
    try:
        server, thread = start_http_server(
            listener.port, addr=listener.host, registry=metrics.registry
        )
    except OSError as error:
        raise OSError(f"cannot serve metrics on {listener.address}: {error.strerror}") from error
    log.info("metrics are served", address=listener.host, port=server.server_port)
    try:
        yield server.server_port
    finally:
        await asyncio.to_thread(_stop, server, thread)  # An answer under way asks this loop.


def _stop(server: WSGIServer, thread: Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join()
