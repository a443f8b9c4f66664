"""One frame stream as its client sees it: many calls in flight, answers in any order.

A stream that breaks fails every call on it, once; whoever owns it opens another.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from google.protobuf.message import DecodeError

from semel.common.v1.frames_pb2 import Cancel
from semel_common.errors import (
    NetworkExceptionError,
    RequestTimedOutError,
    SaslAuthenticationError,
    SemelError,
)
from semel_common.wire import status
from semel_common.wire.methods import Method, Req, Res
from semel_common.wire.outbox import FRAMES_PER_SLICE, Outbox
from semel_common.wire.pieces import Outgoing
from semel_common.wire.pipe import Pipe, PipeUser
from semel_common.wire.streams import ResponseFrame, StreamTypes

OpenPipe = Callable[[PipeUser], Awaitable[Pipe]]
"""Connects; raises SemelError."""


class FrameStream:
    """A stream to one service at one address. Made inside a running event loop."""

    def __init__(self, open_pipe: OpenPipe, types: StreamTypes, address: str) -> None:
        """Begin to connect; calls wait until that is done."""
        self._types = types
        self._address = address
        self._last_correlation_id = 0
        self._outbox = Outbox()
        self._pending: dict[int, asyncio.Future[ResponseFrame]] = {}
        self._arrived: deque[ResponseFrame] = deque()
        self._broken: SemelError | None = None
        self._pipe: Pipe | None = None
        self._opening = asyncio.create_task(self._open(open_pipe), name=f"connect {address}")

    @property
    def broken(self) -> bool:
        """Whether this stream has ended and can carry no further call."""
        return self._broken is not None

    async def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
    ) -> Res:
        """Make one call; errors as ``Connection.call``."""
        if self._broken:
            raise self._broken.again()
        self._last_correlation_id += 1
        correlation_id = self._last_correlation_id
        write = self._types.write_request
        self._outbox.put(*write(correlation_id, timeout_ms, method.field, request, traceparent))
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[ResponseFrame] = loop.create_future()
        self._pending[correlation_id] = answer
        # A plain timer: asyncio.timeout costs several times as much, on every call.
        timer = loop.call_later(timeout_ms / 1000, _time_out, answer)
        try:
            frame = await answer
        except TimeoutError:
            raise RequestTimedOutError(
                f"{self._address} did not answer {method.name} in {timeout_ms} ms"
            ) from None
        finally:
            timer.cancel()
            if self._pending.pop(correlation_id, None) is not None and not self._broken:
                self._outbox.put(*write(correlation_id, 0, "cancel", Cancel()))
            del answer  # It keeps its error, whose frames keep it, and with it the request.
        if frame.HasField("error"):
            raise self._refused(status.from_value(frame.error))
        response = getattr(frame, method.field)
        assert isinstance(response, method.response)
        return response

    async def close(self) -> None:
        """End the stream; calls in flight fail with NetworkExceptionError."""
        self._opening.cancel()
        await asyncio.wait((self._opening,))
        if self._pipe is not None:
            self._pipe.close()
        self.lost(NetworkExceptionError(f"connection to {self._address} was closed"))

    # -- PipeUser ----------------------------------------------------------------------------------

    def received(self, message: bytes | bytearray) -> None:
        """Hand answers to their callers."""
        try:
            frames = self._types.parse_response(message).frames
        except DecodeError:
            self.lost(NetworkExceptionError(f"{self._address} sends what is no answer"))
            if self._pipe is not None:
                self._pipe.abort()
            return
        taking_up = bool(self._arrived)
        self._arrived.extend(frames)
        if not taking_up:
            self._take_up()

    def written(self) -> None:
        """Write on."""
        self._outbox.written()

    def lost(self, error: SemelError) -> None:
        """Fail what is in flight; the first reason counts."""
        if self._broken is not None:
            return
        while self._arrived:
            self._take_up()
        self._broken = error
        pending, self._pending = self._pending, {}
        self._outbox.close()
        for answer in pending.values():
            if not answer.done():
                answer.set_exception(error.again())

    # -- inside ------------------------------------------------------------------------------------

    def _refused(self, error: SemelError) -> SemelError:
        """Return the error of an answer; end the stream if its proof of identity has run out.

        It was let in once, so whoever has a newer proof may open another.
        """
        if not isinstance(error, SaslAuthenticationError):
            return error
        again = NetworkExceptionError(f"{self._address} wants to be connected to again: {error}")
        self.lost(again)
        if self._pipe is not None:
            self._pipe.close()
        return again

    async def _open(self, open_pipe: OpenPipe) -> None:
        try:
            self._pipe = await open_pipe(self)
        except SemelError as error:
            self.lost(error)
            return
        self._outbox.open(self._pipe)

    def _take_up(self) -> None:
        if self._broken:
            return
        for _ in range(min(FRAMES_PER_SLICE, len(self._arrived))):
            frame = self._arrived.popleft()
            answer = self._pending.pop(frame.correlation_id, None)
            if answer is not None and not answer.done():
                answer.set_result(frame)
        if self._arrived:
            asyncio.get_running_loop().call_soon(self._take_up)


def _time_out(answer: "asyncio.Future[ResponseFrame]") -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())
