"""Calls that nobody answers any more: whoever waits hears whether it was cancelled itself."""

import asyncio

import pytest
from server_harness import serving

from semel.group.v1 import group_pb2 as group
from semel_common.errors import NetworkExceptionError
from semel_common.wire.methods import GROUP, TXN_OFFSET_COMMIT, Method
from semel_runtime.server.calls import Call

Request = group.TxnOffsetCommitRequest
Response = group.TxnOffsetCommitResponse

UNARY = Method(GROUP, "TxnOffsetCommit", Request, Response)
TRANSPORTS = pytest.mark.parametrize(
    ("method", "sockets"),
    [(UNARY, True), (TXN_OFFSET_COMMIT, True), (TXN_OFFSET_COMMIT, False)],
    ids=["unary", "sockets", "grpc"],
)


class Silent:
    """A handler that never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def __call__(self, _request: Request, _call: Call) -> Response:
        self.asked.set()
        await asyncio.Event().wait()
        return Response()


@TRANSPORTS
async def test_calls_of_a_connection_that_is_closed_fail_and_are_not_cancelled(
    method: Method[Request, Response], sockets: bool
) -> None:
    """A task that nobody has cancelled must not end as if somebody had."""
    silent = Silent()
    async with serving(silent, sockets=sockets) as served:
        asking = asyncio.create_task(served.connection.call(method, Request(), timeout_ms=30_000))
        await silent.asked.wait()
        await served.connection.close()
        with pytest.raises(NetworkExceptionError, match="was closed"):
            await asking


@TRANSPORTS
async def test_a_call_that_is_cancelled_is_cancelled(
    method: Method[Request, Response], sockets: bool
) -> None:
    silent = Silent()
    async with serving(silent, sockets=sockets) as served:
        asking = asyncio.create_task(served.connection.call(method, Request(), timeout_ms=30_000))
        await silent.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
