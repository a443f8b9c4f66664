"""Nothing of a call lives longer than its answer, without the garbage collector."""

import asyncio
import gc
import tracemalloc
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from security_harness import Issuer
from server_harness import TRANSPORTS, UNARY, Commit, Request, Response, serving
from structlog.testing import capture_logs

from semel.group.v1.group_pb2 import OffsetCommitPartition, OffsetCommitTopic
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.wire.methods import TXN_OFFSET_COMMIT, Method
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.server.calls import Call
from semel_runtime.server.limits.server_limits import ServerLimits

CALLS = 30
SIZE_BYTES = 1 << 20
GARBAGE_PER_CALL_MAX = 10
"""gRPC's client leaves a few objects of each call, and a call that keeps itself leaves more."""
LIMITS = ServerLimits(message_size_max_bytes=SIZE_BYTES)
_METADATA = OffsetCommitPartition(metadata="m" * (SIZE_BYTES - 100))
LARGEST = Request(topics=[OffsetCommitTopic(partitions=[_METADATA])])


class Marker:
    """Lives as long as the frame that has it."""


MARKERS: list["weakref.ref[Marker]"] = []


async def accept(_: Request, __: Call) -> Response:
    marker = Marker()
    MARKERS.append(weakref.ref(marker))
    await asyncio.sleep(0)
    return Response()


async def refuse(_: Request, __: Call) -> Response:
    marker = Marker()
    MARKERS.append(weakref.ref(marker))
    await asyncio.sleep(0)
    refusal = InvalidRequestError("not this one")
    raise refusal


async def fail(_: Request, __: Call) -> Response:
    marker = Marker()
    MARKERS.append(weakref.ref(marker))
    await asyncio.sleep(0)
    defect = ValueError("a defect")
    raise defect


@pytest.fixture(autouse=True, scope="module")
def _frozen_heap(request: pytest.FixtureRequest) -> None:
    """Keep the objects of earlier tests out of this module's many collections."""
    request.getfixturevalue("only_own_garbage")
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_garbage_collector() -> Iterator[None]:
    MARKERS.clear()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    with capture_logs():  # A defect is logged with its traceback, which would show the message.
        yield
    tracemalloc.stop()
    gc.enable()


@TRANSPORTS
@pytest.mark.parametrize("handler", [accept, refuse, fail])
async def test_nothing_of_a_call_outlives_its_answer(
    handler: Commit, method: Method[Request, Response], sockets: bool
) -> None:
    async with serving(handler, LIMITS, sockets=sockets) as served:

        async def call() -> None:
            with suppress(SemelError):
                await served.connection.call(method, LARGEST, timeout_ms=50_000)

        await call()
        gc.collect()  # A test that failed just now has left its frames.
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(CALLS):
            await call()
        await _answered_everything(before)
        alive = [each for each in MARKERS if each() is not None]
    assert len(MARKERS) == CALLS + 1
    assert alive == []
    assert gc.collect() < GARBAGE_PER_CALL_MAX * CALLS


async def test_nothing_of_a_call_without_a_proof_is_kept(tmp_path: Path) -> None:
    listener = ListenerSecurity(tokens=Issuer(tmp_path / "keys.json").verifier())
    async with serving(accept, LIMITS, listener=listener) as served:

        async def call() -> None:
            with pytest.raises(SemelError, match="no token"):
                await served.connection.call(UNARY, LARGEST, timeout_ms=50_000)

        await call()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(CALLS):
            await call()
        await _answered_everything(before)
        assert MARKERS == []


def streamed(channel: grpc.aio.Channel) -> "grpc.aio.StreamUnaryMultiCallable[bytes, bytes]":
    """Return what calls a unary method with any number of messages."""
    return channel.stream_unary(UNARY.path)


async def _answered_everything(before_bytes: int) -> None:
    """Wait until no call holds its message: gRPC's own thread may let go of the last one late."""
    async with asyncio.timeout(20):
        while tracemalloc.get_traced_memory()[0] - before_bytes >= SIZE_BYTES:  # noqa: ASYNC110 - another thread
            await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_caller_without_a_proof_is_refused_before_its_message_is_read(
    tmp_path: Path,
) -> None:
    listener = ListenerSecurity(tokens=Issuer(tmp_path / "keys.json").verifier())
    async with (
        serving(accept, LIMITS, listener=listener) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        call = streamed(channel)()
        await call.wait_for_connection()  # The metadata is sent, and no message.
        assert await call.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_call_without_a_message_is_refused() -> None:
    async with (
        serving(accept, LIMITS) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        call = streamed(channel)()
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert (await call.details()).endswith(": TxnOffsetCommit was called without a message")


async def test_a_message_that_is_too_large_is_refused() -> None:
    async with (
        serving(accept, LIMITS) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        large: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(UNARY.path)
        call = large(bytes(SIZE_BYTES + 1))
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert MARKERS == []


async def test_a_second_message_is_never_read() -> None:
    sent = asyncio.Event()

    async def accept_later(request: Request, call: Call) -> Response:
        await sent.wait()  # A call that is answered takes no second message.
        return await accept(request, call)

    async with (
        serving(accept_later, LIMITS) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        call = streamed(channel)()
        for _ in range(2):
            await call.write(Request().SerializeToString())
        sent.set()
        await call.done_writing()
        assert await call == Response().SerializeToString()
        assert len(MARKERS) == 1


@pytest.mark.parametrize("compression", grpc.Compression)
async def test_compressed_messages_are_read(compression: grpc.Compression) -> None:
    async with (
        serving(accept, LIMITS) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        call = channel.unary_unary(UNARY.path, Request.SerializeToString, Response.FromString)
        assert await call(LARGEST, compression=compression) == Response()


@pytest.mark.parametrize("sockets", [True, False])
async def test_a_lost_connection_keeps_nothing_of_its_callers(sockets: bool) -> None:
    arrived = asyncio.Event()

    async def wait(_: Request, __: Call) -> Response:
        arrived.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async with serving(wait, LIMITS, sockets=sockets) as served:

        async def call() -> str:
            marker = Marker()
            MARKERS.append(weakref.ref(marker))
            try:
                await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=50_000)
            except SemelError as error:
                return error.message
            return "answered"

        calls = [asyncio.create_task(call()) for _ in range(3)]
        await arrived.wait()
        await served.server.abort()
        assert "answered" not in await asyncio.gather(*calls)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [each for each in MARKERS if each() is not None] == []
