"""Asks a service in frames, without a network: a session of a caller, over a pipe in memory."""

import asyncio
from collections.abc import Sequence
from functools import partial

from google.protobuf.message import Message

from semel_common.errors import SemelError
from semel_common.wire import status
from semel_common.wire.frames.stream_messages import STREAMS, join
from semel_common.wire.methods import Method
from semel_runtime.authentication.principal import Origin, Principal
from semel_runtime.server.calls import Handlers
from semel_runtime.server.frames.frame_session import FrameSession
from semel_runtime.server.handler_call import answer
from semel_runtime.server.limits.caller_shares import Ledger
from semel_runtime.server.limits.server_limits import ServerLimits


class _MemoryPipe:
    """Keeps the first message of answers. Implements ``Pipe``."""

    def __init__(self) -> None:
        self.answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def write(self, parts: Sequence[bytes]) -> bool:
        self.answered.set_result(b"".join(parts))
        return True

    def pause_reading(self) -> None:
        """There is one request."""

    def resume_reading(self) -> None:
        """There is one request."""

    def close(self) -> None:
        """There is nothing to close."""

    def abort(self) -> None:
        """There is nothing to end."""


async def ask_framed(
    handlers: Handlers, principal: Principal, method: Method[Message, Message], request: Message
) -> Message:
    """Return the answer to one request, in a frame of a session of its own; raises its error."""
    assert method.stream is not None
    types = STREAMS[method.stream]
    endpoints = {
        handler.method.field: handler
        for handler in handlers
        if handler.method.stream == method.stream
    }
    pipe = _MemoryPipe()
    origin, limits = Origin(listener="default", principal=principal), ServerLimits()
    session = FrameSession(
        types,
        endpoints,
        pipe,
        origin=origin,
        limits=limits,
        shares=Ledger(limits).of(origin),
        answer=answer,
        ended=lambda _session: None,
    )
    frame = join(types.write_request(1, 0, method.field, request))
    asyncio.get_running_loop().call_soon(partial(session.received, frame))
    (answered,) = types.parse_response(await pipe.answered).frames
    if answered.HasField("error"):
        error: SemelError = status.from_value(answered.error)
        raise error
    found: Message = getattr(answered, method.field)
    return found
