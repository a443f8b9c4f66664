"""A server in front of real services, which passes requests on and lies about the answers.

It stands in for every instance: metadata that passes through names its own address instead of
theirs. Frames come by a socket of its own, or by the Stream RPC.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Self, TypeAlias

import grpc
from google.protobuf.message import DecodeError, Message

from semel.common.v1.frames_pb2 import FramesPreface, OpenFramesRequest, OpenFramesResponse
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.wire import methods, status
from semel_common.wire.frames.stream_messages import STREAMS
from semel_common.wire.messages.wire_format import varint
from semel_common.wire.methods import Method
from untrusted.lies import Lie, frame_error, lie

ALL: Mapping[str, Method[Message, Message]] = {
    method.path: method for method in vars(methods).values() if isinstance(method, Method)
}
UnaryCall: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"
_LENGTH_BYTES = 4
_TIMEOUT_S = 5.0
_TRAILER = "grpc-status-details-bin"


class Liar:
    """Lies with one probability about every answer, and with another about frames."""

    def __init__(self, upstream: Mapping[str, str], random: Random) -> None:
        """``upstream`` has the address of the real service of each gRPC service."""
        self._upstream = upstream
        self._random = random
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._server = grpc.aio.server(
            options=[("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)]
        )
        self._sockets: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.probability = 0.0
        """Of a lie."""
        self.metadata_share = 1.0
        """Every operation begins with metadata: with fewer lies there, more is asked for."""
        self.tell: Callable[[Method[Message, Message], Message, Random], Lie] = lie
        self.answers: Counter[str] = Counter()
        """The number of answers, by kind."""
        self.by_rpc: Counter[str] = Counter()
        """Lies, by RPC."""
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server.add_generic_rpc_handlers((_Handler(self),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        self._sockets = await asyncio.start_server(self._serve_socket, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._sockets is not None
        self._sockets.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.stop(0)
        for channel in self._channels.values():
            await channel.close()

    # -- unary calls -----------------------------------------------------------------------------

    async def answer(
        self, path: str, request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]"
    ) -> bytes:
        """Answer one unary call."""
        method = ALL[path]
        told = await self._told(method, request)
        if told.data is not None:
            return told.data
        if told.trailer is None:
            await asyncio.sleep(_TIMEOUT_S)
        context.set_trailing_metadata(((_TRAILER, told.trailer or b""),))
        await context.abort(self._random.choice(_CODES), "no")
        raise AssertionError

    async def _told(self, method: Method[Message, Message], request: bytes) -> Lie:
        """Return the truth, or a lie."""
        truth = await self._truth(method, request)
        often = self.metadata_share if method.path == methods.METADATA.path else 1.0
        if self._random.random() >= self.probability * often:
            self.answers["truth"] += 1
            if isinstance(truth, Lie):
                return truth
            return Lie("truth", truth.SerializeToString())
        answer = method.response() if isinstance(truth, Lie) else truth
        told = self.tell(method, answer, self._random)
        self.answers[told.name] += 1
        self.by_rpc[method.name] += 1
        return told

    async def _truth(self, method: Method[Message, Message], request: bytes) -> Message | Lie:
        if method.path == methods.OPEN_FRAMES.path:
            assert self._sockets is not None
            port = self._sockets.sockets[0].getsockname()[1]
            ticket = OpenFramesRequest.FromString(request).service.encode()
            return OpenFramesResponse(port=self._random.choice((port, port, 0)), ticket=ticket)
        try:
            call: UnaryCall = self._channel(method.service).unary_unary(method.path)
            data = await call(request, timeout=_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            error_ = status.from_rpc_error(error, "upstream")
            return Lie("refused", trailer=status.to_status(error_).SerializeToString())
        answer = method.response.FromString(data)
        if isinstance(answer, cluster.MetadataResponse | cluster.DescribeClusterResponse):
            self._move_here(answer)
        return answer

    def _move_here(
        self, answer: cluster.MetadataResponse | cluster.DescribeClusterResponse
    ) -> None:
        host, _, port = self.address.rpartition(":")
        for each in answer.instances:
            instance = each.instance if isinstance(each, cluster.InstanceDescription) else each
            instance.host, instance.port = host, int(port)

    def _channel(self, service: str) -> grpc.aio.Channel:
        address = self._upstream[service]
        if address not in self._channels:
            self._channels[address] = grpc.aio.insecure_channel(address)
        return self._channels[address]

    # -- frames ----------------------------------------------------------------------------------

    async def stream(self, path: str, requests: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Answer a Stream RPC."""
        service = path.split("/")[1]
        async for message in requests:
            for answer in await self._frames(service, message):
                yield answer

    async def _serve_socket(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with suppress(OSError, ValueError, DecodeError, asyncio.IncompleteReadError):
                await self._serve_frames(reader, writer)
        finally:
            writer.transport.abort()

    async def _serve_frames(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        service = FramesPreface.FromString(await _message(reader)).ticket.decode()
        while service in STREAMS:
            message = await _message(reader)
            if not message:
                writer.write(bytes(_LENGTH_BYTES))
                continue
            for answer in await self._frames(service, message):
                if not self._write(writer, answer):
                    await writer.drain()
                    return

    def _write(self, writer: asyncio.StreamWriter, message: bytes) -> bool:
        """Write a message, or something else; returns whether to go on."""
        if self._random.random() >= self.probability:
            writer.write(len(message).to_bytes(_LENGTH_BYTES) + message)
            return True
        kind = self._random.choice(("half", "too long", "signs of life", "split", "end"))
        self.answers[f"frames: {kind}"] += 1
        match kind:
            case "half":
                writer.write((len(message) + 5).to_bytes(_LENGTH_BYTES) + message)
                return False
            case "too long":
                writer.write(b"\xff\xff\xff\xff" + message)
            case "signs of life":
                writer.write(bytes(_LENGTH_BYTES) * 1_000)
                writer.write(len(message).to_bytes(_LENGTH_BYTES) + message)
            case "split":
                for byte in len(message).to_bytes(_LENGTH_BYTES) + message[:100]:
                    writer.write(bytes((byte,)))
                writer.write(message[100:])
            case _:
                return False
        return True

    async def _frames(self, service: str, message: bytes) -> list[bytes]:
        """Return the messages that answer one message of frames."""
        types = STREAMS[service]
        answers: list[bytes] = []
        for frame in types.parse_request(message).frames:
            field = frame.WhichOneof("request")
            if field is None or field == "cancel":
                continue
            method = _method_of(service, field)
            request = getattr(frame, field).SerializeToString()
            told = await self._told(method, request)
            answers += self._frame(service, frame.correlation_id, field, told)
        return answers

    def _frame(self, service: str, correlation_id: int, field: str, told: Lie) -> list[bytes]:
        types = STREAMS[service]
        if told.data is None and told.trailer is None:
            return []
        response = types.response_frame(correlation_id=correlation_id)
        if told.data is None:
            response.error.CopyFrom(frame_error(self._random))
            return [_framed(response.SerializeToString())]
        plain = _framed(response.SerializeToString())
        tag = types.response_tags[field]
        content = response.SerializeToString() + tag + _length(told.data)
        framed = _framed(content)
        if told.name == "truth" or self._random.random() > 0.3:
            return [framed]
        kind = self._random.choice(("empty frame", "twice", "unasked", "no frames", "garbage"))
        self.answers[f"frames: {kind}"] += 1
        unasked = types.response_frame(correlation_id=self._random.choice((0, 2**64 - 1, 10_000)))
        return {
            "empty frame": [plain],
            "twice": [framed, framed],
            "unasked": [_framed(unasked.SerializeToString()), framed],
            "no frames": [b"", framed],
            "garbage": [self._random.randbytes(30)],
        }[kind]


_CODES = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAUTHENTICATED,
)


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, liar: Liar) -> None:
        self._liar = liar

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        path, liar = handler_call_details.method, self._liar

        async def answer(
            request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]"
        ) -> bytes:
            return await liar.answer(path, request, context)

        async def stream(
            requests: AsyncIterator[bytes], _: "grpc.aio.ServicerContext[bytes, bytes]"
        ) -> AsyncIterator[bytes]:
            async for message in liar.stream(path, requests):
                yield message

        if path.endswith("/Stream"):
            return grpc.stream_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(answer) if path in ALL else None


async def _message(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(_LENGTH_BYTES)))


def _framed(frame: bytes) -> bytes:
    """Return a message of one frame."""
    return b"\x0a" + _length(frame)


def _length(data: bytes) -> bytes:
    return varint(len(data)) + data


def _method_of(service: str, field: str) -> Method[Message, Message]:
    return next(each for each in ALL_STREAMED if each.stream == service and each.field == field)


ALL_STREAMED = [
    method
    for method in vars(methods).values()
    if isinstance(method, Method) and method.stream is not None
]
