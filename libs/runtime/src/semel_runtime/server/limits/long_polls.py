"""Calls that wait for something new: for how long at most, and whether they may still be answered.

A long poll is a method whose request says how long it may wait, in ``max_wait_ms``. It waits no
longer than the server lets it, and its answer leaves only while its caller's token is good.
"""

import time
from collections.abc import Awaitable, Callable

from google.protobuf.message import Message
from msgspec.structs import replace

from semel_common.wire.methods import Method
from semel_runtime.server.calls import Call, Endpoint

MAX_WAIT = "max_wait_ms"


def is_long_poll(method: Method[Message, Message]) -> bool:
    """Whether a request of this method says how long it may wait."""
    return MAX_WAIT in method.request.DESCRIPTOR.fields_by_name


def capped(longest_ms: int) -> Callable[[Endpoint[Message, Message]], Endpoint[Message, Message]]:
    """Return what caps the waits of an endpoint; one that is no long poll stays as it is."""

    def wrapped(endpoint: Endpoint[Message, Message]) -> Endpoint[Message, Message]:
        if not is_long_poll(endpoint.method):
            return endpoint
        return replace(endpoint, handler=_capped(endpoint.handler, longest_ms))

    return wrapped


def _capped(
    handler: Callable[[Message, Call], Awaitable[Message]], longest_ms: int
) -> Callable[[Message, Call], Awaitable[Message]]:
    async def handle(request: Message, call: Call) -> Message:
        if getattr(request, MAX_WAIT) > longest_ms:
            setattr(request, MAX_WAIT, longest_ms)
        response = await handler(request, call)
        call.origin.principal.check_not_expired(time.time())
        return response

    return handle
