"""Many unary calls at once on one connection: each is answered by the server, not by gRPC."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from server_harness import UNARY, Request, Response, Served, serving

from semel_common.wire import status
from semel_runtime.server.calls import Call
from semel_runtime.server.limits.server_limits import ServerLimits


@asynccontextmanager
async def calls_at_once(served: Served, count: int) -> AsyncIterator[list[asyncio.Future[str]]]:
    """Make so many calls on one connection; yields the outcome of each."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with grpc.aio.insecure_channel(served.address, options=options) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[Request, Response] = channel.unary_unary(
            UNARY.path, Request.SerializeToString, Response.FromString
        )

        async def outcome() -> str:
            try:
                await call(Request(), timeout=30)
            except grpc.aio.AioRpcError as error:
                refusal = status.from_rpc_error(error, "here")
                has_info = any(key.endswith("-bin") for key, _ in error.trailing_metadata() or ())
                return f"{refusal.code.name} {'with' if has_info else 'without'} ErrorInfo"
            return "answered"

        yield [asyncio.ensure_future(outcome()) for _ in range(count)]


async def test_more_calls_than_grpc_queues_by_default_are_all_answered() -> None:
    async def echo(_request: Request, _: Call) -> Response:
        return Response()

    async with serving(echo) as served, calls_at_once(served, 1_500) as calls:
        assert Counter(await asyncio.gather(*calls)) == {"answered": 1_500}


async def test_calls_over_the_share_of_their_caller_are_refused_with_the_cause() -> None:
    limits = ServerLimits(
        concurrent_calls_max=80, connection_calls_max=50, principal_share_percent=50
    )
    refused = asyncio.Event()

    async def held(_request: Request, _: Call) -> Response:
        await refused.wait()
        return Response()

    async with serving(held, limits) as served, calls_at_once(served, 45) as calls:
        ended: set[asyncio.Future[str]] = set()
        while len(ended) < 5:
            waiting = [call for call in calls if call not in ended]
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            ended |= done
        refused.set()
        counted = Counter(await asyncio.gather(*calls))
    assert counted == {"answered": 40, "THROTTLING_QUOTA_EXCEEDED with ErrorInfo": 5}


def test_one_connection_reaches_the_share_of_its_caller_before_a_limit_of_grpc() -> None:
    limits = ServerLimits()
    share = limits.concurrent_calls_max * limits.principal_share_percent // 100
    assert share < limits.connection_calls_max < limits.concurrent_calls_max
