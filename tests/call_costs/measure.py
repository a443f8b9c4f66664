"""Sends messages to a service, and takes what its process has used for them, as Linux counts it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import grpc
from google.protobuf.message import Message

from call_costs.messages import costly_messages, in_frame
from semel_common.error_codes import ErrorCode
from semel_common.wire.frames.stream_messages import STREAMS
from semel_common.wire.methods import Method

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TIMEOUT_S = 120
_PAGE_BYTES = 4_096

Send: TypeAlias = Callable[[bytes], Awaitable[str]]
"""Sends one message, and returns how it was answered."""


class Cost(NamedTuple):
    """The cost of one call."""

    what: str
    size_bytes: int
    answer: str
    cpu_ms: float
    held_bytes: int


class Process:
    """The process of one service."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def cpu_ms(self) -> float:
        """Return the processor time that its threads have taken."""
        tasks = (self._folder / "task").glob("*/schedstat")
        return sum(int(task.read_text("utf-8").split()[0]) for task in tasks) / 1e6

    def memory_bytes(self) -> int:
        """Return how much memory it has."""
        return int((self._folder / "statm").read_text("utf-8").split()[1]) * _PAGE_BYTES


async def worst(
    method: Method[Message, Message], send: Send, process: Process, frame_of: int = 0
) -> list[Cost]:
    """Return the messages of a method that take most, in all and for each byte.

    ``frame_of`` is the number of its field in a frame.
    """
    costs: list[Cost] = []
    for what, content in costly_messages(method.request):
        message = in_frame(frame_of, content) if frame_of else content
        await send(b"")  # The process gives back what the last message took.
        cpu_ms, memory_bytes = process.cpu_ms(), process.memory_bytes()
        answer = await send(message)
        held_bytes = process.memory_bytes() - memory_bytes
        costs.append(Cost(what, len(message), answer, process.cpu_ms() - cpu_ms, held_bytes))
    most = max(costs, key=lambda each: each.cpu_ms)
    densest = max(costs, key=lambda each: each.cpu_ms / each.size_bytes)
    return [most] if most is densest else [most, densest]


def unary(channel: grpc.aio.Channel, method: Method[Message, Message]) -> Send:
    """Return what sends unary calls."""
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method.path)

    async def send(message: bytes) -> str:
        try:
            await call(message, timeout=TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            return error.code().name
        return "OK"

    return send


@asynccontextmanager
async def framed(channel: grpc.aio.Channel, stream: str) -> "AsyncIterator[Send]":
    """Open a stream for frames, and yield what sends messages over it."""
    types = STREAMS[stream]
    call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(types.path)()

    async def send(message: bytes) -> str:
        await call.write(message or in_frame(_cancel_of(types.request_frame), b""))
        if not message:
            return "OK"  # A Cancel is not answered.
        received = await call.read()
        assert isinstance(received, bytes), "the service ended the stream"
        answer = types.parse_response(received)
        (frame,) = answer.frames
        return ErrorCode(frame.error.code).name if frame.HasField("error") else "OK"

    try:
        yield send
    finally:
        call.cancel()


def frame_fields(method: Method[Message, Message]) -> Iterator[tuple[str, int]]:
    """Yield the stream that carries a method, and the number of its field there."""
    if method.stream is not None:
        frame = STREAMS[method.stream].request_frame.DESCRIPTOR
        yield method.stream, frame.fields_by_name[method.field].number


def _cancel_of(frame: type[Message]) -> int:
    return frame.DESCRIPTOR.fields_by_name["cancel"].number
