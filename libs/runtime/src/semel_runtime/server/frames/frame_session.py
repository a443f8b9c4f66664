"""Frame streams: many requests of the hot path over one pipe, over the same handlers.

Each request runs in a task of its own, so a parked Fetch delays no other request. Of a message with
many requests a slice is taken up at a time, so that the first are on their way to the disk, and
back, while the last are still decided. Answers go out as they come: the answers that queue while
one message is written are the next message.

``stream_budget`` counts the requests in flight; past the limits the session does not read. A client
that does not read its answers stops itself, and after a while the session ends its stream: other
clients need its share of the service. A stream that carries no request for long is ended too, and
so is a stream whose caller's token has expired.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import structlog
from google.protobuf.message import DecodeError, Message

from semel_common.errors import InvalidRequestError, NetworkExceptionError, SemelError
from semel_common.wire import status
from semel_common.wire.frames.pipe import Pipe
from semel_common.wire.frames.stream_messages import RefusedFrame, RequestFrame, StreamTypes
from semel_common.wire.frames.write_queue import FRAMES_PER_SLICE, Outbox
from semel_runtime.authentication.principal import Origin
from semel_runtime.logs.log_rate_limit import Seldom
from semel_runtime.server.calls import Call, Endpoint, Written
from semel_runtime.server.handler_call import Answer, unknown_failure
from semel_runtime.server.limits.caller_shares import Shares
from semel_runtime.server.limits.server_limits import ServerLimits
from semel_runtime.server.limits.stream_budget import InFlight
from semel_runtime.server.limits.stream_lifetime import Lifetime

log = structlog.get_logger(__name__)

EXPIRY_GRACE_S = 1.0
"""How long requests may still take that were in flight when their caller's token expired."""
_BROKEN = Seldom()


class _Arrived(NamedTuple):
    """A frame that waits to be taken up, with its share of the message's bytes."""

    frame: RequestFrame | RefusedFrame
    size_bytes: int


class _Answer(NamedTuple):
    """An answer that waits to be written, with the bytes of it and of its request."""

    size_bytes: int
    written: Written


class FrameSession:
    """One open stream. Uses a pipe: see ``PipeUser``."""

    def __init__(
        self,
        types: StreamTypes,
        endpoints: Mapping[str, Endpoint[Message, Message]],
        pipe: Pipe,
        *,
        origin: Origin,
        limits: ServerLimits,
        shares: Shares,
        answer: Answer,
        ended: "Callable[[FrameSession], None]",
    ) -> None:
        """Take endpoints by the name of their field in the frames. ``ended`` is told the end.

        The stream counts in the shares of its caller until it ends.
        """
        self._types = types
        self._endpoints = endpoints
        self._pipe = pipe
        self._origin = origin
        self._limits = limits
        self._answer = answer
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._arrived: deque[_Arrived] = deque()
        self._shares = shares
        self._in_flight = InFlight(pipe, limits, shares)
        self._ending = False
        self._outbox = Outbox(self._sent, self._blocked)
        self._answered: deque[_Answer] = deque()
        self._impatience: asyncio.TimerHandle | None = None
        self._ended = ended
        self._lost = False
        self._lifetime = Lifetime(
            max_idle_ms=limits.connections_max_idle_ms,
            expires_at=origin.principal.expires_at,
            is_busy=lambda: self._in_flight.requests > 0,
            idle=self.finished,
            expired=self._expired,
        )
        shares.streams.take()
        self._outbox.open(pipe)

    @property
    def requests_in_flight(self) -> int:
        """Requests that are not answered yet."""
        return self._in_flight.requests

    # -- PipeUser ------------------------------------------------------------------------------

    def received(self, message: bytes | bytearray) -> None:
        """Take up the requests of a message."""
        if self._ending:
            return
        try:
            frames = self._types.read_requests(message)
        except (DecodeError, InvalidRequestError) as error:
            self._pipe.abort()
            if count := _BROKEN.count():
                log.warning(
                    "client sends a message that is no request", reason=str(error), count=count
                )
            return
        taking_up = bool(self._arrived)
        share = len(message) // len(frames) if frames else 0
        self._arrived.extend(_Arrived(frame, share) for frame in frames)
        self._lifetime.used = True
        self._in_flight.take(len(frames), share * len(frames))
        if not taking_up:
            self._take_up()

    def written(self) -> None:
        """Go on: the client reads."""
        self._calm()
        self._outbox.written()

    def finished(self) -> None:
        """Take no further request, answer the arrived ones, then end the stream."""
        self._ending = True
        self._in_flight.end()
        self._end_if_answered()

    def drain(self) -> None:
        """Take up no further request, answer those in flight, then end the stream."""
        self._release(len(self._arrived), sum(each.size_bytes for each in self._arrived))
        self._arrived.clear()
        self.finished()

    def lost(self, error: SemelError) -> None:
        """End: a client that has vanished takes the waiting for its answers with it."""
        if self._lost:
            return
        self._lost = self._ending = True
        self._arrived.clear()
        self._outbox.close()
        self._calm()
        self._lifetime.end()
        for answer in self._answered:
            answer.written.settle()
        self._answered.clear()
        self._end_requests(tuple(self._tasks.values()))
        self._shares.streams.give_back()
        self._ended(self)
        log.debug("frame stream ended", reason=str(error))

    def _end_requests(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Cancel requests; the caller's share has room again when the last one has ended."""
        self._in_flight.end()
        left = set(tasks)

        def ended(task: asyncio.Task[None]) -> None:
            left.discard(task)
            if not left:
                self._in_flight.clear()

        for task in tasks:
            task.add_done_callback(ended)
            task.cancel()
        if not tasks:
            self._in_flight.clear()

    def abort(self) -> None:
        """End at once: nothing is answered any more."""
        self.lost(NetworkExceptionError("the service ends"))
        self._pipe.abort()

    # -- requests ------------------------------------------------------------------------------

    def _take_up(self) -> None:
        for _ in range(min(FRAMES_PER_SLICE, len(self._arrived))):
            self._accept(*self._arrived.popleft())
        if self._arrived:
            asyncio.get_running_loop().call_soon(self._take_up)

    def _accept(self, frame: RequestFrame | RefusedFrame, size: int) -> None:
        if isinstance(frame, RefusedFrame):
            self._answer_refusal(frame.correlation_id, frame.error, size)
            return
        name = frame.WhichOneof("request")
        if name == "cancel":
            task = self._tasks.get(frame.correlation_id)
            if task is not None:
                # After its first step, which may not have been yet: of a task that is cancelled
                # before, no line runs, and nothing would give back what is counted as its own.
                asyncio.get_running_loop().call_soon(task.cancel)
            self._release(1, size)
            return
        endpoint = self._endpoints.get(name or "")
        if endpoint is None or frame.correlation_id in self._tasks:
            self._refuse(frame, size)
            return
        run = self._run(endpoint, frame, getattr(frame, name or ""), size)
        self._tasks[frame.correlation_id] = asyncio.create_task(run)

    def _refuse(self, frame: RequestFrame, size: int) -> None:
        reason = (
            "is in flight already" if frame.correlation_id in self._tasks else "carries no request"
        )
        error = InvalidRequestError(f"frame with correlation_id {frame.correlation_id} {reason}")
        self._answer_refusal(frame.correlation_id, error, size)

    def _answer_refusal(self, correlation_id: int, error: SemelError, size: int) -> None:
        self._send(correlation_id, "error", status.to_value(error), size, Written())

    async def _run(
        self, endpoint: Endpoint[Message, Message], frame: RequestFrame, request: Message, size: int
    ) -> None:
        correlation_id = frame.correlation_id
        deadline = None
        if frame.timeout_ms:
            deadline = asyncio.get_running_loop().time() + frame.timeout_ms / 1000
        written = Written()
        call = Call(
            origin=self._origin,
            traceparent=frame.traceparent,
            deadline=deadline,
            written=written,
        )
        try:
            response = await self._answer(endpoint, request, call)
        except asyncio.CancelledError:
            written.settle()
            self._release(1, size)
            raise
        except SemelError as error:
            self._send(correlation_id, "error", status.to_value(error.as_value()), size, written)
        except Exception as error:  # noqa: BLE001 - what looks on at a request: spans, metrics
            failure = unknown_failure(endpoint, error)
            self._send(correlation_id, "error", status.to_value(failure), size, written)
        else:
            self._send(correlation_id, endpoint.method.field, response, size, written)
        finally:
            del self._tasks[correlation_id]

    # -- answers -------------------------------------------------------------------------------

    def _send(
        self, correlation_id: int, field: str, answer: Message, request_size: int, written: Written
    ) -> None:
        if self._lost:
            written.settle()
            return
        frame = self._types.write_response(correlation_id, field, answer)
        self._answered.append(_Answer(request_size + len(frame), written))
        self._outbox.put(frame)
        self._in_flight.take(0, len(frame))

    def _sent(self, count: int) -> None:
        size_bytes = 0
        for _ in range(count):
            each = self._answered.popleft()
            each.written.settle()
            size_bytes += each.size_bytes
        self._release(count, size_bytes)

    def _release(self, count: int, size_bytes: int) -> None:
        self._in_flight.release(count, size_bytes)
        self._end_if_answered()

    def _end_if_answered(self) -> None:
        if self._ending and not self._in_flight.requests:
            self._pipe.close()

    def _expired(self) -> None:
        """End the stream: requests in flight have a moment for their answers, others have none."""
        self.finished()
        asyncio.get_running_loop().call_later(EXPIRY_GRACE_S, self._pipe.abort)

    def _blocked(self) -> None:
        self._impatience = asyncio.get_running_loop().call_later(
            self._limits.write_timeout_ms / 1000, self._give_up
        )

    def _calm(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None

    def _give_up(self) -> None:
        held_bytes = self._in_flight.size_bytes
        self._pipe.abort()
        log.warning("client does not read its answers", bytes=held_bytes)
