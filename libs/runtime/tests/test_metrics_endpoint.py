"""The metrics endpoint: the answers for Prometheus, and the bounds for every caller."""

import asyncio
import gzip
import threading
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.metrics import Metrics
from semel_runtime.metrics.endpoint import EndpointLimits, metrics_endpoint

LISTENER = Listener(name="metrics", host="127.0.0.1", port=0)
LIMITS = EndpointLimits(connections_max=8, request_timeout_ms=200, answer_timeout_ms=200)
HALF = b"GET /metrics HTTP/1.1\r\nHost: x\r\n"


@pytest_asyncio.fixture
async def metrics() -> Metrics:
    return Metrics()


@pytest_asyncio.fixture
async def port(metrics: Metrics) -> AsyncIterator[int]:
    async with metrics_endpoint(LISTENER, metrics, LIMITS) as port:
        yield port


async def ask(port: int, request: bytes) -> tuple[bytes, bytes]:
    """Return the head and the body of the answer; both empty if there is none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        answer = await reader.read()
    except ConnectionError:
        answer = b""  # It was ended.
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


async def test_prometheus_gets_all_metrics(port: int, metrics: Metrics) -> None:
    metrics.requests.of("s", "Method").refused("CODE")
    head, body = await ask(port, HALF + b"\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: %d" % len(body) in head
    assert b'semel_requests_refused_total{code="CODE",method="Method",service="s"} 1.0' in body


async def test_prometheus_says_which_form_it_wants(port: int) -> None:
    head, body = await ask(
        port,
        HALF + b"Accept: application/openmetrics-text;version=1.0.0\r\n"
        b"Accept-Encoding: gzip\r\n\r\n",
    )
    assert b"Content-Type: application/openmetrics-text; version=1.0.0" in head
    assert gzip.decompress(body).endswith(b"# EOF\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/2\r\n\r\n", b"400"),
        (b"GET http://[broken HTTP/1.1\r\n\r\n", b"400"),
        (HALF + b"x: y\r\n" * 200 + b"\r\n", b"400"),
        (HALF + b"x: " + b"y" * 20_000 + b"\r\n\r\n", b"431"),
    ],
    ids=["method", "nonsense", "version", "target", "headers", "size"],
)
async def test_a_request_that_is_none_is_refused(port: int, request_: bytes, status: bytes) -> None:
    head, _ = await ask(port, request_)
    assert head.split(b" ")[1:2] == [status]


async def test_half_a_request_is_given_up(port: int) -> None:
    async with asyncio.timeout(20):
        assert await ask(port, HALF) == (b"", b"")


async def test_half_requests_do_not_keep_prometheus_out_and_make_no_threads(port: int) -> None:
    """Each one more ends the oldest of them; Prometheus is answered in between."""
    threads = threading.active_count()
    halves = []
    for _ in range(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HALF)
        halves.append((reader, writer))
    head, _ = await ask(port, HALF + b"\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert threading.active_count() <= threads + LIMITS.answers_max
    for _, writer in halves:
        writer.close()


async def test_a_caller_that_does_not_read_is_given_up(metrics: Metrics) -> None:
    for number in range(1_000):  # More than the buffers of both sides take.
        metrics.requests.of("s" * 1_000, f"method-{number}").refused("CODE")
    limits = EndpointLimits(connections_max=1, answer_timeout_ms=500)
    async with metrics_endpoint(LISTENER, metrics, limits) as port, asyncio.timeout(30):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(HALF + b"\r\n")
        answered = b""
        while not answered:  # As long as the other one has the only place.
            answered, _ = await ask(port, b"GET /favicon.ico HTTP/1.1\r\n\r\n")
        writer.close()
