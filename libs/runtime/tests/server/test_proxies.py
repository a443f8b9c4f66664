"""A proxy in the environment: the parts of a cluster ignore it, and clients use it if told to."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from peers import listening, relay
from server_harness import Request, echo, serving

from semel_common.errors import NetworkExceptionError
from semel_common.telemetry.span_export import open_telemetry
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import TXN_OFFSET_COMMIT
from semel_runtime.testing.collector import collecting

ELSEWHERE = "192.0.2.1:9092"
"""An address for documentation: no machine has it."""


@asynccontextmanager
async def proxy(target: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[bytes]]:
    """Run a proxy that leads everywhere to one place; yields the first line of each request."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).splitlines()[0])
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await relay(reader, writer, target)

    async with listening(serve) as address:
        for name in ("http_proxy", "https_proxy", "grpc_proxy"):
            monkeypatch.setenv(name, f"http://{address}")
        yield asked


async def call(address: str, *, use_proxy: bool, timeout_ms: int) -> None:
    connector = GrpcConnector(ChannelOptions(use_proxy=use_proxy))
    try:
        answer = await connector.connect(address).call(
            TXN_OFFSET_COMMIT, Request(base_sequence=7), timeout_ms=timeout_ms
        )
    finally:
        await connector.close()
    assert answer.throttle_time_ms == 7


@pytest.mark.parametrize("use_proxy", [False, True])
async def test_connection_to_the_loopback_never_goes_by_a_proxy(
    monkeypatch: pytest.MonkeyPatch, use_proxy: bool
) -> None:
    async with serving(echo) as served, proxy(served.address, monkeypatch) as asked:
        await call(served.address, use_proxy=use_proxy, timeout_ms=5_000)
    assert asked == []


async def test_client_that_uses_the_proxy_reaches_another_machine_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(echo) as served, proxy(served.address, monkeypatch) as asked:
        await call(ELSEWHERE, use_proxy=True, timeout_ms=5_000)
    assert asked == [f"CONNECT {ELSEWHERE} HTTP/1.1".encode()]


async def test_connection_to_another_machine_goes_by_no_proxy_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(echo) as served, proxy(served.address, monkeypatch) as asked:
        with pytest.raises(NetworkExceptionError):
            await call("nosuch.invalid:9092", use_proxy=False, timeout_ms=5_000)
    assert asked == []


async def test_spans_reach_a_collector_on_this_machine_by_no_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with collecting() as collector:
        async with proxy(collector.endpoint.removeprefix("http://"), monkeypatch) as asked:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
            telemetry = open_telemetry(os.environ, "semel-test")
            assert telemetry is not None
            telemetry.tracer("test").start_span("span").end()
            await telemetry.aclose()
    assert collector.services() == {"semel-test"}
    assert asked == []
