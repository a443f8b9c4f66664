"""Unary calls, and frames over sockets and over gRPC, for real on loopback."""

import asyncio

import grpc
import pytest
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from peers import listening, relay
from server_harness import TRANSPORTS, UNARY, Request, Response, Served, echo, serving

from semel.group.v1 import group_pb2 as group
from semel.group.v1.group_pb2_grpc import GroupServiceStub
from semel_common.errors import (
    NetworkExceptionError,
    ProducerFencedError,
    RequestTimedOutError,
    UnknownServerError,
)
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import (
    GROUP,
    LIST_GROUPS,
    LIST_OFFSETS,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    Method,
)
from semel_runtime.server.calls import ANSWER_MS, Call, Handlers
from semel_runtime.server.grpc_server import LIVENESS, NOT_SERVING, SERVING, GrpcServer
from semel_runtime.server.limits.server_limits import ServerLimits
from semel_runtime.testing.virtual_time import after

PATIENCE_MS = 50_000
"""A busy machine answers in this time, which the timeout of tests exceeds."""
FRAMES = pytest.mark.parametrize("sockets", [True, False], ids=["sockets", "grpc"])


@TRANSPORTS
async def test_a_call_gets_the_answer_of_its_handler(
    method: Method[Request, Response], sockets: bool
) -> None:
    async with serving(echo, sockets=sockets) as served:
        response = await served.connection.call(
            method, Request(base_sequence=7), timeout_ms=PATIENCE_MS
        )
        assert response.throttle_time_ms == 7
        assert served.calls[0].origin.listener == "default"


async def test_a_connection_may_take_as_long_as_a_far_server_needs() -> None:
    """The first bytes arrive after three tenths of a second: a handshake over an ocean."""
    async with serving(echo) as served:

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await after(300)
            await relay(reader, writer, served.address)

        async with listening(slow) as address:
            connector = GrpcConnector()
            response = await connector.connect(address).call(
                UNARY, Request(base_sequence=7), timeout_ms=PATIENCE_MS
            )
            assert response.throttle_time_ms == 7
            await connector.close()


@pytest.mark.parametrize("method", [LIST_OFFSETS, PRODUCE], ids=["unary", "frames"])
async def test_a_service_of_another_kind_at_an_address_is_looked_for_elsewhere(
    method: Method[Message, Message],
) -> None:
    """The address of an instance that has moved may be given to any other."""
    async with serving(echo) as served:
        with pytest.raises(NetworkExceptionError, match="another service"):
            await served.connection.call(method, method.request(), timeout_ms=PATIENCE_MS)


@TRANSPORTS
async def test_an_error_arrives_as_its_class_with_message_and_details(
    method: Method[Request, Response],
    sockets: bool,
) -> None:
    async def refuse(_: Request, __: Call) -> Response:
        raise ProducerFencedError("producer epoch 3 is older than 4", outcome="COMMITTED")

    async with serving(refuse, sockets=sockets) as served:
        with pytest.raises(ProducerFencedError, match="epoch 3 is older than 4") as caught:
            await served.connection.call(method, Request(), timeout_ms=PATIENCE_MS)
        assert caught.value.details == {"outcome": "COMMITTED"}


@TRANSPORTS
async def test_a_handler_that_breaks_answers_an_unknown_server_error(
    method: Method[Request, Response],
    sockets: bool,
) -> None:
    async def broken(_: Request, __: Call) -> Response:
        raise ValueError("a secret of the server's")

    async with serving(broken, sockets=sockets) as served:
        with pytest.raises(UnknownServerError, match="ValueError") as caught:
            await served.connection.call(method, Request(), timeout_ms=PATIENCE_MS)
        assert "secret" not in caught.value.message


@TRANSPORTS
async def test_a_handler_that_waits_as_long_as_it_may_has_time_to_answer(
    method: Method[Request, Response],
    sockets: bool,
) -> None:
    """The answer is definite, though the handler's own wait has brought nothing."""
    early_ms: list[float] = []

    async def wait(_: Request, call: Call) -> Response:
        assert call.deadline is not None
        left_ms = (call.deadline - asyncio.get_running_loop().time()) * 1000
        early_ms.append(left_ms - call.remaining_ms(99_999))
        # gRPC rounds the remaining time up to a tenth of a second, by a clock that may be behind.
        assert 0 < left_ms <= PATIENCE_MS + 1_000
        raise RequestTimedOutError("decided, but not complete", outcome="COMMITTED")

    async with serving(wait, sockets=sockets) as served:
        with pytest.raises(RequestTimedOutError, match="decided, but not complete") as caught:
            await served.connection.call(method, Request(), timeout_ms=PATIENCE_MS)
        assert caught.value.details == {"outcome": "COMMITTED"}
    assert early_ms[0] >= ANSWER_MS


@TRANSPORTS
async def test_a_deadline_ends_the_wait_of_the_handler(
    method: Method[Request, Response],
    sockets: bool,
) -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def never(_: Request, __: Call) -> Response:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async with serving(never, sockets=sockets) as served:
        timeout_ms = 50
        while not entered.is_set():  # A busy machine may need longer to bring the request there.
            timeout_ms *= 2
            with pytest.raises(RequestTimedOutError):
                await served.connection.call(method, Request(), timeout_ms=timeout_ms)
        await cancelled.wait()


@FRAMES
async def test_answers_come_in_any_order(sockets: bool) -> None:
    release = asyncio.Event()

    async def parked_if_first(request: Request, call: Call) -> Response:
        if request.base_sequence == 1:
            await release.wait()
        return await echo(request, call)

    async with serving(parked_if_first, sockets=sockets) as served:
        call = served.connection.call
        parked = asyncio.create_task(
            call(TXN_OFFSET_COMMIT, Request(base_sequence=1), timeout_ms=PATIENCE_MS)
        )
        second = await call(TXN_OFFSET_COMMIT, Request(base_sequence=2), timeout_ms=PATIENCE_MS)
        assert second.throttle_time_ms == 2
        assert not parked.done()
        release.set()
        assert (await parked).throttle_time_ms == 1


@FRAMES
async def test_a_thousand_calls_at_once_share_one_stream(sockets: bool) -> None:
    async with serving(echo, sockets=sockets) as served:
        answers = await asyncio.gather(
            *(
                served.connection.call(
                    TXN_OFFSET_COMMIT, Request(base_sequence=i), timeout_ms=PATIENCE_MS
                )
                for i in range(1_000)
            )
        )
        assert [answer.throttle_time_ms for answer in answers] == list(range(1_000))


@pytest.mark.parametrize(
    "limits",
    [ServerLimits(stream_in_flight_requests_max=1), ServerLimits(stream_in_flight_max_bytes=1)],
    ids=["requests", "bytes"],
)
async def test_a_stream_over_its_limit_is_not_read_until_answers_go_out(
    limits: ServerLimits,
) -> None:
    entered: list[int] = []
    release = asyncio.Event()

    async def parked(request: Request, call: Call) -> Response:
        entered.append(request.base_sequence)
        await release.wait()
        return await echo(request, call)

    async with serving(parked, limits) as served:
        channel = grpc.aio.insecure_channel(served.address)
        stream = GroupServiceStub(channel).Stream()
        for number in (1, 2):
            await stream.write(group.StreamRequest(frames=[commit_frame(number)]))
        for _ in range(20):  # Long enough for the second request, if it were read.
            await GroupServiceStub(channel).ListGroups(group.ListGroupsRequest())
        assert entered == [1]
        release.set()
        for number in (1, 2):
            answer = await stream.read()
            assert isinstance(answer, group.StreamResponse)
            assert answer.frames[0].correlation_id == number
        await channel.close()


async def test_a_correlation_id_that_is_in_flight_is_refused() -> None:
    release = asyncio.Event()

    async def parked(request: Request, call: Call) -> Response:
        await release.wait()
        return await echo(request, call)

    async with serving(parked) as served:
        channel = grpc.aio.insecure_channel(served.address)
        stream = GroupServiceStub(channel).Stream()
        await stream.write(group.StreamRequest(frames=[commit_frame(1), commit_frame(1)]))
        refused = await stream.read()
        assert isinstance(refused, group.StreamResponse)
        assert refused.frames[0].error.message == "frame with correlation_id 1 is in flight already"
        release.set()
        answer = await stream.read()
        assert isinstance(answer, group.StreamResponse)
        assert answer.frames[0].txn_offset_commit.throttle_time_ms == 1
        await channel.close()


def commit_frame(number: int) -> group.RequestFrame:
    """Make a frame whose request has its correlation id as sequence."""
    return group.RequestFrame(
        correlation_id=number, txn_offset_commit=Request(base_sequence=number)
    )


@FRAMES
async def test_a_stop_answers_calls_in_flight_and_then_refuses(sockets: bool) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def parked(request: Request, call: Call) -> Response:
        entered.set()
        await release.wait()
        return await echo(request, call)

    async with serving(parked, sockets=sockets) as served:
        call = served.connection.call
        waiting = asyncio.create_task(
            call(TXN_OFFSET_COMMIT, Request(base_sequence=5), timeout_ms=PATIENCE_MS)
        )
        await entered.wait()
        stopping = asyncio.create_task(served.server.stop(drain_ms=0, grace_ms=5_000))
        release.set()
        assert (await waiting).throttle_time_ms == 5
        await stopping
        with pytest.raises(NetworkExceptionError):
            await call(TXN_OFFSET_COMMIT, Request(), timeout_ms=PATIENCE_MS)


@FRAMES
async def test_calls_stay_parked_while_a_server_that_stops_still_serves(sockets: bool) -> None:
    entered, release = asyncio.Event(), asyncio.Event()
    answered = 0

    async def parked(_: Request, __: Call) -> Response:
        entered.set()
        await release.wait()
        return Response()

    async def ask_again_and_again(served: Served) -> None:
        nonlocal answered
        while True:
            await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=PATIENCE_MS)
            answered += 1

    async with serving(parked, sockets=sockets) as served:
        asking = asyncio.create_task(ask_again_and_again(served))
        await entered.wait()
        await served.server.stop(drain_ms=50, grace_ms=5_000, answer_parked=release.set)
        with pytest.raises(NetworkExceptionError):
            await asking
    assert answered == 1


@FRAMES
async def test_a_lost_server_fails_calls_in_flight_once(sockets: bool) -> None:
    entered = asyncio.Event()

    async def parked(_: Request, __: Call) -> Response:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(parked, sockets=sockets) as served:
        waiting = asyncio.create_task(
            served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=PATIENCE_MS)
        )
        await entered.wait()
        await served.server.stop(drain_ms=0, grace_ms=0)
        with pytest.raises(NetworkExceptionError):
            await waiting


async def test_an_empty_frame_is_refused_and_the_stream_goes_on() -> None:
    async with serving(echo) as served:
        channel = grpc.aio.insecure_channel(served.address)
        stream = GroupServiceStub(channel).Stream()
        await stream.write(group.StreamRequest(frames=[group.RequestFrame(correlation_id=1)]))
        refused = await stream.read()
        assert isinstance(refused, group.StreamResponse)
        assert refused.frames[0].error.message == ("frame with correlation_id 1 carries no request")
        frame = group.RequestFrame(correlation_id=1, txn_offset_commit=Request(base_sequence=3))
        await stream.write(group.StreamRequest(frames=[frame]))
        answer = await stream.read()
        assert isinstance(answer, group.StreamResponse)
        assert answer.frames[0].txn_offset_commit.throttle_time_ms == 3
        await stream.done_writing()
        assert await stream.read() == grpc.aio.EOF
        await channel.close()


async def test_health_follows_the_service_and_liveness_does_not() -> None:
    async with serving(echo) as served:
        channel = grpc.aio.insecure_channel(served.address)
        assert await statuses(channel) == [SERVING, SERVING, SERVING]
        stopping = asyncio.create_task(served.server.stop(drain_ms=60_000, grace_ms=0))
        while await statuses(channel) != [NOT_SERVING, NOT_SERVING, SERVING]:
            pass
        stopping.cancel()
        await channel.close()


async def test_the_listener_for_health_answers_nothing_else() -> None:
    server = GrpcServer(ServerLimits())
    port = server.bind_health("127.0.0.1:0")
    await server.start(Handlers())
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    assert await status(channel, "") == NOT_SERVING
    assert await status(channel, LIVENESS) == SERVING
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await GroupServiceStub(channel).ListGroups(group.ListGroupsRequest())
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
    await channel.close()
    await server.stop(drain_ms=0, grace_ms=0)


async def statuses(channel: grpc.aio.Channel) -> list[int]:
    """Return the health of all, of the service, and of the process."""
    return [await status(channel, name) for name in ("", GROUP, LIVENESS)]


async def status(channel: grpc.aio.Channel, name: str) -> int:
    """Return the health by this name."""
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        health_pb2.HealthCheckRequest.SerializeToString,
        health_pb2.HealthCheckResponse.FromString,
    )
    answer = await check(health_pb2.HealthCheckRequest(service=name))
    return answer.status


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_the_services(version: str) -> None:
    async with serving(echo) as served:
        channel = grpc.aio.insecure_channel(served.address)
        info = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        names = [
            each.name
            async for listed in info(iter([request]))
            for each in listed.list_services_response.service
        ]
        assert GROUP in names
        await channel.close()


async def test_an_rpc_without_a_handler_is_looked_for_elsewhere() -> None:
    async with serving(echo) as served:
        missing = Method("semel.group.v1.GroupService", "Nothing", Request, Response)
        with pytest.raises(NetworkExceptionError):
            await served.connection.call(missing, Request(), timeout_ms=PATIENCE_MS)
        listed = await served.connection.call(
            LIST_GROUPS, group.ListGroupsRequest(), timeout_ms=PATIENCE_MS
        )
        assert listed == group.ListGroupsResponse()


@TRANSPORTS
async def test_a_call_on_a_closed_connection_fails_as_a_lost_one(
    method: Method[Request, Response], sockets: bool
) -> None:
    """A client that is closed beside its calls closes their channel: gRPC then raises its own."""
    async with serving(echo, sockets=sockets) as served:
        await served.connection.call(method, Request(), timeout_ms=PATIENCE_MS)
        await served.connection.close()
        for called in (method, UNARY):
            with pytest.raises(NetworkExceptionError, match=served.address):
                await served.connection.call(called, Request(), timeout_ms=PATIENCE_MS)
