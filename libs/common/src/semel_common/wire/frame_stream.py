"""One frame stream as its client sees it: many calls in flight, answers in any order.

What has queued while the last message was written is the next message: batching without a timer.
A stream that breaks fails every call on it, once; whoever owns it opens another.
"""

import asyncio
from collections import deque
from typing import TypeAlias

import grpc

from semel.common.v1.frames_pb2 import Cancel
from semel_common.errors import NetworkExceptionError, RequestTimedOutError, SemelError
from semel_common.wire import status
from semel_common.wire.methods import Method, Req, Res
from semel_common.wire.streams import (
    RequestFrame,
    ResponseFrame,
    StreamRequest,
    StreamResponse,
    StreamTypes,
)

MESSAGE_SIZE_SOFT_MAX_BYTES = 1 << 20
"""A message takes no further frame once it is this large."""

StreamCall: TypeAlias = "grpc.aio.StreamStreamCall[StreamRequest, StreamResponse]"


class FrameStream:
    """A stream to one service at one address. Made inside a running event loop."""

    def __init__(self, call: StreamCall, types: StreamTypes, address: str) -> None:
        """Take over an opened call."""
        self._call = call
        self._types = types
        self._address = address
        self._last_correlation_id = 0
        self._outbox: deque[RequestFrame] = deque()
        self._outbox_filled = asyncio.Event()
        self._pending: dict[int, asyncio.Future[ResponseFrame]] = {}
        self._broken: SemelError | None = None
        self._task = asyncio.create_task(self._run(), name=f"frame stream {address}")

    @property
    def broken(self) -> bool:
        """Whether this stream has ended and can carry no further call."""
        return self._broken is not None

    async def call(self, method: Method[Req, Res], request: Req, *, timeout_ms: int) -> Res:
        """Make one call; errors as ``Connection.call``."""
        if self._broken:
            raise self._broken
        self._last_correlation_id += 1
        correlation_id = self._last_correlation_id
        answer: asyncio.Future[ResponseFrame] = asyncio.get_running_loop().create_future()
        self._pending[correlation_id] = answer
        self._enqueue(
            self._types.request_frame(
                correlation_id=correlation_id, timeout_ms=timeout_ms, **{method.field: request}
            )
        )
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                frame = await answer
        except TimeoutError:
            raise RequestTimedOutError(
                f"{self._address} did not answer {method.name} in {timeout_ms} ms"
            ) from None
        finally:
            if self._pending.pop(correlation_id, None) is not None and not self._broken:
                self._enqueue(
                    self._types.request_frame(correlation_id=correlation_id, cancel=Cancel())
                )
        if frame.HasField("error"):
            raise status.from_value(frame.error)
        response = getattr(frame, method.field)
        assert isinstance(response, method.response)
        return response

    async def close(self) -> None:
        """End the stream; calls in flight fail with NetworkExceptionError."""
        self._task.cancel()
        await asyncio.wait((self._task,))

    def _enqueue(self, frame: RequestFrame) -> None:
        self._outbox.append(frame)
        self._outbox_filled.set()

    async def _run(self) -> None:
        writer = asyncio.create_task(self._write(), name=f"frame writer {self._address}")
        try:
            await self._read()
            self._break(NetworkExceptionError(f"{self._address} ended the stream"))
        except grpc.aio.AioRpcError as error:
            self._break(status.from_rpc_error(error, self._address))
        except asyncio.CancelledError:
            # Either ours, by close, or grpc's, which raises it from a call that was cancelled.
            self._break(NetworkExceptionError(f"connection to {self._address} was closed"))
            raise
        finally:
            self._call.cancel()
            writer.cancel()

    async def _write(self) -> None:
        while True:
            await self._outbox_filled.wait()
            try:
                await self._call.write(self._types.stream_request(frames=self._take_outbox()))
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                return  # The call is over; the reader learns why.

    def _take_outbox(self) -> list[RequestFrame]:
        frames, size = [], 0
        while self._outbox and size < MESSAGE_SIZE_SOFT_MAX_BYTES:
            frame = self._outbox.popleft()
            frames.append(frame)
            size += frame.ByteSize()
        if not self._outbox:
            self._outbox_filled.clear()
        return frames

    async def _read(self) -> None:
        async for message in self._call:
            for frame in message.frames:
                answer = self._pending.pop(frame.correlation_id, None)
                if answer is not None and not answer.done():
                    answer.set_result(frame)

    def _break(self, error: SemelError) -> None:
        self._broken = error
        pending, self._pending = self._pending, {}
        self._outbox.clear()
        for answer in pending.values():
            if not answer.done():
                answer.set_exception(error)
