"""One frame stream as its client sees it: many calls in flight, answers in any order.

A stream that breaks fails every call on it, once; its connection opens another stream. A message
that is over a bound or malformed breaks the stream, and so does an answer to a call that was never
made. A stream that has been idle for most of the time that its server allows ends itself: the
server would end it soon, and a request could be on its way then.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from google.protobuf.message import DecodeError

from semel.common.v1.frames_pb2 import Cancel
from semel_common.client_errors import InvalidResponseError
from semel_common.errors import (
    NetworkExceptionError,
    RequestTimedOutError,
    SaslAuthenticationError,
    SemelError,
    ThrottlingQuotaExceededError,
)
from semel_common.wire import status
from semel_common.wire.frames.pipe import Pipe, PipeUser
from semel_common.wire.frames.stream_messages import ResponseFrame, StreamTypes
from semel_common.wire.frames.write_queue import FRAMES_PER_SLICE, Outbox
from semel_common.wire.messages.message_pieces import Outgoing
from semel_common.wire.messages.message_scan import ScanError
from semel_common.wire.messages.response_parsing import AnswerBounds, check_answer, unusable
from semel_common.wire.methods import Method, Req, Res

ARRIVED_MAX = 4_096
"""While so many frames wait to be handed out, no further message is read."""
_IDLE_PART = 0.4
"""After two looks at this part of the server's time, a stream that was idle at both ends itself."""

LIMIT, STREAMS_LIMIT = "limit", "streams"
"""What the error of a server says in its details that takes no further stream."""


class Opened(NamedTuple):
    """A pipe that was opened, and how long it may be idle; 0: the server does not say."""

    pipe: Pipe
    max_idle_ms: int


OpenPipe = Callable[[PipeUser], Awaitable[Opened]]
"""Connects; raises SemelError."""


class FrameStream:
    """A stream to one service at one address. Made inside a running event loop."""

    def __init__(
        self, open_pipe: OpenPipe, types: StreamTypes, address: str, bounds: AnswerBounds
    ) -> None:
        """Begin to connect; calls wait until that is done."""
        self._types = types
        self._address = address
        self._bounds = bounds
        self._paused = False
        self._last_correlation_id = 0
        self._outbox = Outbox()
        self._pending: dict[int, asyncio.Future[ResponseFrame]] = {}
        self._arrived: deque[ResponseFrame] = deque()
        self._broken: SemelError | None = None
        self._pipe: Pipe | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._opening = asyncio.create_task(self._open(open_pipe), name=f"connect {address}")

    @property
    def refused(self) -> bool:
        """Whether the server took no further stream: it has seen no request of this one."""
        error = self._broken
        return (
            isinstance(error, ThrottlingQuotaExceededError)
            and error.details.get(LIMIT) == STREAMS_LIMIT
        )

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
        if frame.WhichOneof("response") != method.field:
            raise self._refused(self._error_of(frame, method.name))
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
        types = self._types
        try:
            check_answer(message, types.stream_response, self._bounds)
            frames = types.parse_response(message).frames
        except (ScanError, DecodeError) as error:
            rpc = types.path.rpartition("/")[2]
            self._break(unusable(self._address, rpc, types.stream_response, message, error))
            return
        taking_up = bool(self._arrived)
        self._arrived.extend(frames)
        if not taking_up:
            self._take_up()
        if len(self._arrived) > ARRIVED_MAX and self._pipe is not None and not self._broken:
            self._paused = True
            self._pipe.pause_reading()

    def written(self) -> None:
        """Write on."""
        self._outbox.written()

    def lost(self, error: SemelError) -> None:
        """Fail the calls in flight; the first reason counts.

        A stream was let in when it was opened: a refusal from the pipe means that its proof of
        identity has run out meanwhile.
        """
        self._end(self._again(error) if isinstance(error, SaslAuthenticationError) else error)

    def _end(self, error: SemelError) -> None:
        if self._broken is not None:
            return
        while self._arrived:
            self._take_up()
        self._broken = error
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        pending, self._pending = self._pending, {}
        self._outbox.close()
        for answer in pending.values():
            if not answer.done():
                answer.set_exception(error.again())

    # -- inside ------------------------------------------------------------------------------------

    def _error_of(self, frame: ResponseFrame, rpc: str) -> SemelError:
        """Return the error of a frame without the answer to its call."""
        if frame.HasField("error"):
            return status.from_value(frame.error)
        field = frame.WhichOneof("response") or "no response"
        return InvalidResponseError(
            f"{self._address} answered {rpc} with {field}",
            address=self._address,
            rpc=rpc,
            field="response",
        )

    def _break(self, error: SemelError) -> None:
        self.lost(error)
        if self._pipe is not None:
            self._pipe.abort()

    def _refused(self, error: SemelError) -> SemelError:
        """Return the error of an answer; end the stream if its proof of identity has run out.

        The server accepted an earlier proof of this caller, so a newer proof may open another
        stream.
        """
        if not isinstance(error, SaslAuthenticationError):
            return error
        again = self._again(error)
        self.lost(again)
        if self._pipe is not None:
            self._pipe.close()
        return again

    def _again(self, error: SemelError) -> NetworkExceptionError:
        return NetworkExceptionError(f"{self._address} asks for a new connection: {error}")

    async def _open(self, open_pipe: OpenPipe) -> None:
        try:
            self._pipe, max_idle_ms = await open_pipe(self)
        except SemelError as error:
            self._end(error)
            return
        finally:
            if self._pipe is None:  # A defect, or cancellation: calls must not wait for a pipe.
                self.lost(NetworkExceptionError(f"no connection to {self._address} was opened"))
        self._outbox.open(self._pipe)
        if max_idle_ms:
            self._look_if_idle(max_idle_ms / 1000 * _IDLE_PART, since=None)

    def _look_if_idle(self, period_s: float, *, since: int | None) -> None:
        """End the stream if no call was made, and none was in flight, since the last look."""
        if self._broken or self._pipe is None:
            return
        if since == self._last_correlation_id and not self._pending:
            self.lost(NetworkExceptionError(f"the idle stream to {self._address} was closed"))
            self._pipe.close()
            return
        calls = None if self._pending else self._last_correlation_id
        self._idle_timer = asyncio.get_running_loop().call_later(
            period_s, partial(self._look_if_idle, period_s, since=calls)
        )

    def _take_up(self) -> None:
        if self._broken:
            return
        for _ in range(min(FRAMES_PER_SLICE, len(self._arrived))):
            frame = self._arrived.popleft()
            answer = self._pending.pop(frame.correlation_id, None)
            if answer is not None:
                if not answer.done():
                    answer.set_result(frame)
            elif not 0 < frame.correlation_id <= self._last_correlation_id:
                self._arrived.clear()
                self._break(self._unasked(frame.correlation_id))
                return
        if self._arrived:
            asyncio.get_running_loop().call_soon(self._take_up)
        elif self._paused and self._pipe is not None:
            self._paused = False
            self._pipe.resume_reading()

    def _unasked(self, correlation_id: int) -> InvalidResponseError:
        return InvalidResponseError(
            f"{self._address} answered a frame with correlation id {correlation_id}, and the last"
            f" frame sent has {self._last_correlation_id}",
            address=self._address,
            field="correlation_id",
        )


def _time_out(answer: "asyncio.Future[ResponseFrame]") -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())
