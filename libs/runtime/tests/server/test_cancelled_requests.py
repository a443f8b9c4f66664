"""What a server does about requests that are cancelled before it has begun with them."""

import asyncio

import grpc
import pytest
from server_harness import Served, serving

from semel.common.v1.frames_pb2 import Cancel
from semel.group.v1 import group_pb2 as group
from semel.group.v1.group_pb2_grpc import GroupServiceStub
from semel_common.wire.methods import TXN_OFFSET_COMMIT
from semel_runtime.server.calls import Call
from semel_runtime.server.limits.server_limits import ServerLimits

Request = group.TxnOffsetCommitRequest
Response = group.TxnOffsetCommitResponse

COUNT = 3


async def parked(request: Request, _: Call) -> Response:
    if request.group_id == "parked":
        await asyncio.Event().wait()
    return Response()


def requests_with_their_cancels() -> group.StreamRequest:
    """Return what a client writes whose calls have timed out before it could write them."""
    message = group.StreamRequest()
    for number in range(COUNT):
        message.frames.add(correlation_id=number, txn_offset_commit=Request(group_id="parked"))
    for number in range(COUNT):
        message.frames.add(correlation_id=number, cancel=Cancel())
    return message


async def nothing_in_flight(served: Served) -> None:
    """Wait until the server counts no request: a client may have an answer before that."""
    while served.server.requests_in_flight:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)


async def test_a_stream_is_read_on_after_a_request_and_its_cancel_in_one_message() -> None:
    limits = ServerLimits(stream_in_flight_requests_max=COUNT)
    async with (
        asyncio.timeout(50),
        serving(parked, limits) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        stream = GroupServiceStub(channel).Stream()
        await stream.write(requests_with_their_cancels())
        await stream.write(
            group.StreamRequest(
                frames=[group.RequestFrame(correlation_id=COUNT, txn_offset_commit=Request())]
            )
        )
        answer = await stream.read()
        assert isinstance(answer, group.StreamResponse)
        assert [frame.correlation_id for frame in answer.frames] == [COUNT]
        await nothing_in_flight(served)
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF


@pytest.mark.parametrize("sockets", [True, False])
async def test_calls_that_are_cancelled_at_once_leave_nothing_in_flight(*, sockets: bool) -> None:
    async with asyncio.timeout(50), serving(parked, sockets=sockets) as served:

        async def call(group_id: str) -> None:
            request = Request(group_id=group_id)
            await served.connection.call(TXN_OFFSET_COMMIT, request, timeout_ms=50_000)

        await call("")
        calls = [asyncio.create_task(call("parked")) for _ in range(COUNT)]
        await asyncio.sleep(0)
        for each in calls:
            each.cancel()
        await asyncio.wait(calls)
        await call("")
        await nothing_in_flight(served)
