"""Calls without an answer: a waiting task learns whether it was cancelled itself."""

import asyncio

import pytest
from google.protobuf.message import Message
from server_harness import TRANSPORTS, Request, Response, Served, serving

from semel_common.errors import NetworkExceptionError, UnknownServerError
from semel_common.wire.methods import TXN_OFFSET_COMMIT, Method
from semel_runtime.server.calls import Call, Endpoint


class Silent:
    """A handler that never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def __call__(self, _request: Request, _call: Call) -> Response:
        self.asked.set()
        await asyncio.Event().wait()
        return Response()

    async def ask(
        self, served: Served, method: Method[Request, Response]
    ) -> asyncio.Task[Response]:
        """Call it, and return once it has been asked."""
        asking = asyncio.create_task(served.connection.call(method, Request(), timeout_ms=30_000))
        await self.asked.wait()
        return asking


@TRANSPORTS
async def test_calls_of_a_connection_that_is_closed_fail_and_are_not_cancelled(
    method: Method[Request, Response], sockets: bool
) -> None:
    """A task that was not cancelled must not end as a cancelled one."""
    silent = Silent()
    async with serving(silent, sockets=sockets) as served:
        asking = await silent.ask(served, method)
        await served.connection.close()
        with pytest.raises(NetworkExceptionError, match="was closed"):
            await asking


@TRANSPORTS
async def test_a_call_that_is_cancelled_is_cancelled(
    method: Method[Request, Response], sockets: bool
) -> None:
    silent = Silent()
    async with serving(silent, sockets=sockets) as served:
        asking = await silent.ask(served, method)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


@pytest.mark.parametrize("sockets", [True, False])
async def test_a_call_in_a_frame_is_answered_when_what_looks_on_fails(*, sockets: bool) -> None:
    """A span that cannot be made, or a figure that cannot be counted, must not leave it waiting."""

    async def broken(endpoint: Endpoint[Message, Message], request: Message, call: Call) -> Message:
        del endpoint, request, call
        raise LookupError("no sampler")

    silent = Silent()
    async with asyncio.timeout(20), serving(silent, sockets=sockets) as served:
        served.server._answer = broken
        with pytest.raises(UnknownServerError, match="failed with LookupError"):
            await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=600_000)
