"""Frame streams: many requests of the hot path over one call, over the same handlers.

Each request runs in a task of its own, so a parked Fetch delays nobody. Of a message with many
requests a slice is taken up at a time, so that the first are on their way to the disk, and back,
while the last are still decided. Answers go out as they come: what has queued while the last
message was written is the next message.

A request counts as in flight, with its bytes and those of its answer, until its answer is written;
past the limits the stream is not read. A client that does not read its answers stops itself, and
after a while the stream is ended: what it holds of the service is needed by others.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, TypeAlias

import grpc
import structlog
from google.protobuf.message import Message

from semel_common.errors import InvalidRequestError, SemelError
from semel_common.wire import status
from semel_common.wire.outbox import FRAMES_PER_SLICE, Outbox
from semel_common.wire.streams import RequestFrame, StreamRequest, StreamTypes, join
from semel_runtime.server.answer import answer
from semel_runtime.server.calls import Call, Endpoint, Written
from semel_runtime.server.limits import ServerLimits

log = structlog.get_logger(__name__)

StreamContext: TypeAlias = "grpc.aio.ServicerContext[Arrived, bytes]"


class Arrived(NamedTuple):
    """A message with its size."""

    message: StreamRequest
    size_bytes: int


class _Answer(NamedTuple):
    """An answer that waits to be written, with what it and its request take."""

    size_bytes: int
    written: Written


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
        self._outbox = Outbox()
        self._answered: list[_Answer] = []
        self._draining = asyncio.Event()

    async def serve(self, requests: AsyncIterator[Arrived], context: StreamContext) -> None:
        """Serve until the client closes the stream or ``drain`` was called and all is answered.

        A client that vanishes takes the waiting for its answers with it.
        """
        try:
            await self._serve(requests, context)
        except* grpc.aio.InternalError as errors:
            log.debug("client vanished", error=str(errors.exceptions[0]))
        except* TimeoutError:
            log.warning("client does not read its answers", bytes=self._in_flight_bytes)
        finally:
            for each in self._answered:
                each.written.settle()

    async def _serve(self, requests: AsyncIterator[Arrived], context: StreamContext) -> None:
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

    # -- requests ------------------------------------------------------------------------------

    async def _read(self, requests: AsyncIterator[Arrived], group: asyncio.TaskGroup) -> None:
        async for message, size_bytes in requests:
            await self._until_room()  # Answers may have been made while this one came.
            frames = message.frames
            for start in range(0, len(frames), FRAMES_PER_SLICE):
                if start:
                    await asyncio.sleep(0)
                for frame in frames[start : start + FRAMES_PER_SLICE]:
                    self._accept(frame, size_bytes // len(frames), group)
            await self._until_room()

    async def _until_room(self) -> None:
        while self._full():
            self._room.clear()
            await self._room.wait()

    def _full(self) -> bool:
        return (
            self._in_flight_bytes >= self._limits.stream_in_flight_max_bytes
            or self._in_flight_requests >= self._limits.stream_in_flight_requests_max
        )

    def _accept(self, frame: RequestFrame, size: int, group: asyncio.TaskGroup) -> None:
        name = frame.WhichOneof("request")
        if name == "cancel":
            task = self._tasks.get(frame.correlation_id)
            if task is not None:
                task.cancel()
            return
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
        self._send(frame.correlation_id, "error", status.to_value(error), size, Written())

    async def _run(
        self, endpoint: Endpoint[Message, Message], frame: RequestFrame, request: Message, size: int
    ) -> None:
        correlation_id = frame.correlation_id
        deadline = None
        if frame.timeout_ms:
            deadline = asyncio.get_running_loop().time() + frame.timeout_ms / 1000
        written = Written()
        call = Call(
            listener=self._listener,
            traceparent=frame.traceparent,
            deadline=deadline,
            written=written,
        )
        try:
            response = await answer(endpoint, request, call)
        except asyncio.CancelledError:
            written.settle()
            self._release(size)
            raise
        except SemelError as error:
            self._send(correlation_id, "error", status.to_value(error), size, written)
        else:
            self._send(correlation_id, endpoint.method.field, response, size, written)
        finally:
            del self._tasks[correlation_id]

    # -- answers -------------------------------------------------------------------------------

    def _send(
        self, correlation_id: int, field: str, answer: Message, request_size: int, written: Written
    ) -> None:
        frame = self._types.write_response(correlation_id, field, answer)
        self._in_flight_bytes += len(frame)
        self._outbox.put(frame)
        self._answered.append(_Answer(request_size + len(frame), written))

    def _release(self, size_bytes: int) -> None:
        self._in_flight_requests -= 1
        self._in_flight_bytes -= size_bytes
        self._room.set()

    async def _write(self, context: StreamContext) -> None:
        while True:
            frames = await self._outbox.take()
            async with asyncio.timeout(self._limits.write_timeout_ms / 1000):
                await context.write(join(frames))
            for each in self._answered[: len(frames)]:
                each.written.settle()
                self._release(each.size_bytes)
            del self._answered[: len(frames)]

    async def _all_answered(self) -> None:
        while self._in_flight_requests:
            self._room.clear()
            await self._room.wait()
