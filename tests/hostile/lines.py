"""The transports of attackers: below the SDK, so that any bytes may be sent.

A call's result is the name of its error code, ``OK``, or gRPC's own status (``grpc:UNAVAILABLE``)
where the answer has no ``ErrorInfo``.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import grpc
from google.protobuf.message import Message

from hostile.callers import Caller
from hostile.stage import Stage
from semel.common.v1.frames_pb2 import FramesPreface, OpenFramesRequest
from semel_common.errors import SemelError
from semel_common.wire import status
from semel_common.wire.frames.length_prefix import write_message
from semel_common.wire.frames.stream_messages import STREAMS
from semel_common.wire.methods import OPEN_FRAMES, Method

UNLIMITED: Sequence[tuple[str, int]] = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)
CALL_TIMEOUT_S = 60.0


class UnaryLine:
    """Unary calls over one gRPC channel."""

    def __init__(self, channel: grpc.aio.Channel, metadata: Sequence[tuple[str, str]]) -> None:
        self._channel = channel
        self._metadata = metadata

    async def call(self, path: str, message: bytes, *, timeout_s: float = CALL_TIMEOUT_S) -> str:
        """Send the bytes of one message to a method; return its result."""
        result, _ = await self.answer(path, message, timeout_s=timeout_s)
        return result

    async def answer(
        self, path: str, message: bytes, *, timeout_s: float = CALL_TIMEOUT_S
    ) -> tuple[str, bytes]:
        """Send the bytes of one message to a method; return its result and its answer."""
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(path)
        try:
            answer = await unary(message, timeout=timeout_s, metadata=tuple(self._metadata))
        except grpc.aio.AioRpcError as error:
            return result_of(error), b""
        return "OK", answer

    async def ask(self, method: Method[Message, Message], request: Message) -> str:
        """Send a request; return its result."""
        return await self.call(method.path, request.SerializeToString())


def result_of(error: grpc.aio.AioRpcError) -> str:
    """Return the name of an error's code, or gRPC's status where there is no ``ErrorInfo``."""
    details = [key for key, _ in error.trailing_metadata() or () if key.startswith("grpc-status-d")]
    if not details:
        return f"grpc:{error.code().name}"
    return status.from_rpc_error(error, "").code.name


@asynccontextmanager
async def unary_line(
    stage: Stage, address: str, caller: Caller, metadata: Sequence[tuple[str, str]] = ()
) -> AsyncIterator[UnaryLine]:
    """Open a channel that shares no connection with others; its calls have the metadata, too."""
    credentials = stage.issuer.channel_credentials()
    async with grpc.aio.secure_channel(address, credentials, options=UNLIMITED) as channel:
        yield UnaryLine(channel, (*stage.issuer.metadata(caller), *metadata))


class FrameLine:
    """A socket that was let in, or not: whole messages go out, answers come in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, message: bytes) -> None:
        """Send the bytes of one message, with their length."""
        self.writer.write(write_message((message,)))
        await self.writer.drain()

    async def announce(self, length: int, begun: bytes = b"") -> None:
        """Send the length of a message, and only its beginning."""
        self.writer.write(length.to_bytes(4) + begun)
        await self.writer.drain()

    async def receive(self, *, timeout_s: float = CALL_TIMEOUT_S) -> bytes | None:
        """Return the next message; None when the service has closed the connection."""
        try:
            async with asyncio.timeout(timeout_s):
                length = int.from_bytes(await self.reader.readexactly(4))
                return await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            return None


@asynccontextmanager
async def frame_line(
    stage: Stage, address: str, service: str, caller: Caller
) -> AsyncIterator[FrameLine]:
    """Get a ticket and connect. Raises PermissionError if the service gives no ticket."""
    async with unary_line(stage, address, caller) as line:
        request = OpenFramesRequest(service=service).SerializeToString()
        result, answer = await line.answer(OPEN_FRAMES.path, request)
    if result != "OK":
        raise PermissionError(result)
    offer = OPEN_FRAMES.response.FromString(answer)
    assert offer.port, f"{address} takes no frames over sockets"
    async with socket_line(stage, offer.host or address.rpartition(":")[0], offer.port) as line_:
        await line_.send(FramesPreface(ticket=offer.ticket).SerializeToString())
        yield line_


@asynccontextmanager
async def socket_line(stage: Stage, host: str, port: int) -> AsyncIterator[FrameLine]:
    """Connect a TLS socket, and send nothing."""
    reader, writer = await asyncio.open_connection(
        host, port, ssl=stage.tls(), server_hostname="localhost"
    )
    try:
        yield FrameLine(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def stream_line(
    stage: Stage, address: str, service: str, caller: Caller
) -> AsyncIterator["grpc.aio.StreamStreamCall[bytes, bytes]"]:
    """Open a Stream RPC; the call is written to and read from as gRPC's is."""
    credentials = stage.issuer.channel_credentials()
    async with grpc.aio.secure_channel(address, credentials, options=UNLIMITED) as channel:
        metadata = stage.issuer.metadata(caller)
        open_call: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(
            STREAMS[service].path
        )
        call = open_call(metadata=metadata)
        try:
            yield call
        finally:
            call.cancel()


async def frames_port(stage: Stage, address: str, service: str) -> int:
    """Return the port at which a service takes frames, as the writer is told."""
    async with unary_line(stage, address, Caller.WRITER) as line:
        request = OpenFramesRequest(service=service).SerializeToString()
        result, answer = await line.answer(OPEN_FRAMES.path, request)
    if result != "OK":
        raise SemelError(f"no ticket for the frames of {service}: {result}")
    return OPEN_FRAMES.response.FromString(answer).port
