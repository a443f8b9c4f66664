"""Unary calls whose message does not come: each caller has a share, and they end in time."""

import asyncio
from contextlib import AsyncExitStack
from typing import TypeAlias

import grpc
import pytest
from server_harness import UNARY, Request, Response, Served, echo, serving

from semel_common.errors import RequestTimedOutError, SemelError, ThrottlingQuotaExceededError
from semel_common.wire import status
from semel_runtime.server.limits.server_limits import ServerLimits

SilentCall: TypeAlias = "grpc.aio.StreamUnaryCall[bytes, bytes]"


async def silent_call(served: Served, stack: AsyncExitStack) -> SilentCall:
    """Begin a call on a connection of its own, and send no message."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    channel = grpc.aio.insecure_channel(served.address, options=options)
    await stack.enter_async_context(channel)
    method: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary(UNARY.path)
    call = method()
    await call.wait_for_connection()
    return call


async def refusal(call: SilentCall) -> SemelError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return status.from_rpc_error(caught.value, "here")


async def test_calls_without_a_message_leave_room_for_others() -> None:
    limits = ServerLimits(
        concurrent_calls_max=100, principal_share_percent=4, cluster_reserve_percent=0
    )
    async with serving(echo, limits) as served, AsyncExitStack() as stack:
        calls = [await silent_call(served, stack) for _ in range(5)]
        refused = await refusal(calls[4])
        assert isinstance(refused, ThrottlingQuotaExceededError)
        assert "its share is 4" in refused.message
        calls[0].cancel()
        answered = await silent_call(served, stack)
        await answered.write(Request(base_sequence=3).SerializeToString())
        await answered.done_writing()
        assert Response.FromString(await answered).throttle_time_ms == 3


async def test_call_whose_message_does_not_come_ends_in_time() -> None:
    limits = ServerLimits(arrival_timeout_ms=20)
    async with serving(echo, limits) as served, AsyncExitStack() as stack:
        ended = await refusal(await silent_call(served, stack))
        assert isinstance(ended, RequestTimedOutError)
        assert "did not arrive" in ended.message


async def test_call_that_ends_gives_its_share_back() -> None:
    limits = ServerLimits(
        concurrent_calls_max=2, principal_share_percent=50, cluster_reserve_percent=0
    )
    async with serving(echo, limits) as served:
        for number in range(5):
            answer = await served.connection.call(
                UNARY, Request(base_sequence=number), timeout_ms=50_000
            )
            assert answer.throttle_time_ms == number
            await asyncio.sleep(0)
