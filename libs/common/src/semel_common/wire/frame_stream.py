"""One frame stream as its client sees it: many calls in flight, answers in any order.

What has queued while the last message was written is the next message: batching without a timer.
A stream that breaks fails every call on it, once; whoever owns it opens another.
"""

import asyncio
from typing import TypeAlias

import grpc

from semel.common.v1.frames_pb2 import Cancel
from semel_common.errors import NetworkExceptionError, RequestTimedOutError, SemelError
from semel_common.wire import status
from semel_common.wire.methods import Method, Req, Res
from semel_common.wire.outbox import FRAMES_PER_SLICE, Outbox
from semel_common.wire.streams import ResponseFrame, StreamResponse, StreamTypes, join

StreamCall: TypeAlias = "grpc.aio.StreamStreamCall[bytes, StreamResponse]"


class FrameStream:
    """A stream to one service at one address. Made inside a running event loop."""

    def __init__(self, call: StreamCall, types: StreamTypes, address: str) -> None:
        """Take over an opened call."""
        self._call = call
        self._types = types
        self._address = address
        self._last_correlation_id = 0
        self._outbox = Outbox()
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
        write = self._types.write_request
        self._outbox.put(write(correlation_id, timeout_ms, method.field, request))
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
                self._outbox.put(write(correlation_id, 0, "cancel", Cancel()))
        if frame.HasField("error"):
            raise status.from_value(frame.error)
        response = getattr(frame, method.field)
        assert isinstance(response, method.response)
        return response

    async def close(self) -> None:
        """End the stream; calls in flight fail with NetworkExceptionError."""
        self._task.cancel()
        await asyncio.wait((self._task,))

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
            frames = await self._outbox.take()
            try:
                await self._call.write(join(frames))
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                return  # The call is over; the reader learns why.

    async def _read(self) -> None:
        async for message in self._call:
            frames = message.frames
            for start in range(0, len(frames), FRAMES_PER_SLICE):
                if start:
                    await asyncio.sleep(0)
                for frame in frames[start : start + FRAMES_PER_SLICE]:
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


def _time_out(answer: "asyncio.Future[ResponseFrame]") -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())
