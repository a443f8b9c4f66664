"""Frame streams: many requests of the hot path over one call, over the same handlers.

Each request runs in a task of its own, so a parked Fetch delays nobody. Answers go out as they
come: what has queued while the last message was written is the next message. A request counts as
in flight until its answer is written; past the limits the stream is not read, so a client that
does not read its answers stops itself and nobody else.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import TypeAlias

import grpc
from google.protobuf.message import Message

from semel_common.errors import InvalidRequestError, SemelError
from semel_common.wire import status
from semel_common.wire.streams import (
    RequestFrame,
    ResponseFrame,
    StreamRequest,
    StreamResponse,
    StreamTypes,
)
from semel_runtime.server.answer import answer
from semel_runtime.server.calls import Call, Endpoint
from semel_runtime.server.limits import ServerLimits

MESSAGE_SIZE_SOFT_MAX_BYTES = 1 << 20
"""A message takes no further frame once it is this large."""

StreamContext: TypeAlias = "grpc.aio.ServicerContext[StreamRequest, StreamResponse]"


class FrameSession:
    """One open stream."""

    def __init__(
        self,
        types: StreamTypes,
        endpoints: Mapping[str, Endpoint[Message, Message]],
        *,
        listener: str,
        limits: ServerLimits,
    ) -> None:
        """Take endpoints by the name of their field in the frames."""
        self._types = types
        self._endpoints = endpoints
        self._listener = listener
        self._limits = limits
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._in_flight_requests = 0
        self._in_flight_bytes = 0
        self._room = asyncio.Event()
        self._outbox: deque[tuple[ResponseFrame, int]] = deque()
        self._outbox_filled = asyncio.Event()
        self._draining = asyncio.Event()

    async def serve(self, requests: AsyncIterator[StreamRequest], context: StreamContext) -> None:
        """Serve until the client closes the stream or ``drain`` was called and all is answered."""
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(self._write(context), name="frame writer")
            reader = group.create_task(self._read(requests, group), name="frame reader")
            drained = group.create_task(self._draining.wait(), name="frame drain")
            await asyncio.wait((reader, drained), return_when=asyncio.FIRST_COMPLETED)
            if reader.done() and not self._draining.is_set():
                # The client has closed its side; half-closed or gone, it gets what is on the way.
                drained.cancel()
            reader.cancel()
            await self._all_answered()
            writer.cancel()

    def drain(self) -> None:
        """Take no further request, answer those in flight, then end the stream."""
        self._draining.set()

    def abandon(self) -> None:
        """Cancel what is still in flight: the grace period is over, or the client is gone."""
        for task in self._tasks.values():
            task.cancel()

    # -- requests ------------------------------------------------------------------------------

    async def _read(self, requests: AsyncIterator[StreamRequest], group: asyncio.TaskGroup) -> None:
        async for message in requests:
            for frame in message.frames:
                self._accept(frame, group)
            while self._full():
                self._room.clear()
                await self._room.wait()

    def _full(self) -> bool:
        return (
            self._in_flight_bytes >= self._limits.stream_in_flight_max_bytes
            or self._in_flight_requests >= self._limits.stream_in_flight_requests_max
        )

    def _accept(self, frame: RequestFrame, group: asyncio.TaskGroup) -> None:
        name = frame.WhichOneof("request")
        if name == "cancel":
            task = self._tasks.get(frame.correlation_id)
            if task is not None:
                task.cancel()
            return
        size = frame.ByteSize()
        self._in_flight_requests += 1
        self._in_flight_bytes += size
        endpoint = self._endpoints.get(name or "")
        if endpoint is None or frame.correlation_id in self._tasks:
            self._refuse(frame, size)
            return
        task = group.create_task(self._run(endpoint, frame, getattr(frame, name or ""), size))
        self._tasks[frame.correlation_id] = task

    def _refuse(self, frame: RequestFrame, size: int) -> None:
        reason = (
            "is in flight already" if frame.correlation_id in self._tasks else "carries no request"
        )
        error = InvalidRequestError(f"frame with correlation_id {frame.correlation_id} {reason}")
        self._send(self._error_frame(frame.correlation_id, error), size)

    async def _run(
        self, endpoint: Endpoint[Message, Message], frame: RequestFrame, request: Message, size: int
    ) -> None:
        correlation_id = frame.correlation_id
        deadline = None
        if frame.timeout_ms:
            deadline = asyncio.get_running_loop().time() + frame.timeout_ms / 1000
        call = Call(listener=self._listener, traceparent=frame.traceparent, deadline=deadline)
        try:
            response = await answer(endpoint, request, call)
        except asyncio.CancelledError:
            self._release(size)
            raise
        except SemelError as error:
            self._send(self._error_frame(correlation_id, error), size)
        else:
            self._send(
                self._types.response_frame(
                    correlation_id=correlation_id, **{endpoint.method.field: response}
                ),
                size,
            )
        finally:
            del self._tasks[correlation_id]

    def _error_frame(self, correlation_id: int, error: SemelError) -> ResponseFrame:
        return self._types.response_frame(
            correlation_id=correlation_id, error=status.to_value(error)
        )

    # -- answers -------------------------------------------------------------------------------

    def _send(self, frame: ResponseFrame, request_size: int) -> None:
        self._outbox.append((frame, request_size))
        self._outbox_filled.set()

    def _release(self, request_size: int) -> None:
        self._in_flight_requests -= 1
        self._in_flight_bytes -= request_size
        self._room.set()

    async def _write(self, context: StreamContext) -> None:
        while True:
            await self._outbox_filled.wait()
            frames, released = self._take_outbox()
            await context.write(self._types.stream_response(frames=frames))
            for request_size in released:
                self._release(request_size)

    def _take_outbox(self) -> tuple[list[ResponseFrame], list[int]]:
        frames: list[ResponseFrame] = []
        released: list[int] = []
        size = 0
        while self._outbox and size < MESSAGE_SIZE_SOFT_MAX_BYTES:
            frame, request_size = self._outbox.popleft()
            frames.append(frame)
            released.append(request_size)
            size += frame.ByteSize()
        if not self._outbox:
            self._outbox_filled.clear()
        return frames, released

    async def _all_answered(self) -> None:
        while self._in_flight_requests:
            self._room.clear()
            await self._room.wait()
