"""Connections over gRPC: frames for the calls of the hot path, unary calls for the rest."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from semel_common.wire import status
from semel_common.wire.frame_stream import FrameStream, StreamCall
from semel_common.wire.methods import Method, Req, Res
from semel_common.wire.streams import STREAMS


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOptions:
    """How channels are made."""

    message_size_max_bytes: int = 64 << 20
    """The largest message that is sent or taken."""
    reconnect_backoff_max_ms: int = 1_000
    """How long gRPC waits at most between attempts to connect."""
    keepalive_time_ms: int = 30_000
    """How long a connection is silent before it is probed."""
    keepalive_timeout_ms: int = 10_000
    """How long the answer to a probe may take before the connection counts as lost."""

    def as_channel_arguments(self) -> list[tuple[str, int]]:
        """Return gRPC's own names and values."""
        return [
            ("grpc.max_send_message_length", self.message_size_max_bytes),
            ("grpc.max_receive_message_length", self.message_size_max_bytes),
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.min_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", self.reconnect_backoff_max_ms),
            ("grpc.keepalive_time_ms", self.keepalive_time_ms),
            ("grpc.keepalive_timeout_ms", self.keepalive_timeout_ms),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            # Two connectors of one process must not share a connection: each closes its own.
            ("grpc.use_local_subchannel_pool", 1),
        ]


class GrpcConnection:
    """A channel to one address with the frame streams on it. Implements ``Connection``."""

    def __init__(self, address: str, arguments: Sequence[tuple[str, int]]) -> None:
        """Make the channel; it connects when first used."""
        self._address = address
        self._channel = grpc.aio.insecure_channel(address, options=arguments)
        self._streams: dict[str, FrameStream] = {}

    async def call(self, method: Method[Req, Res], request: Req, *, timeout_ms: int) -> Res:
        """Make one call; see ``Connection.call``."""
        if method.stream is not None:
            return await self._stream(method.stream).call(method, request, timeout_ms=timeout_ms)
        unary = self._channel.unary_unary(
            method.path, method.request.SerializeToString, method.response.FromString
        )
        try:
            return await unary(request, timeout=timeout_ms / 1000)
        except grpc.aio.AioRpcError as error:
            raise status.from_rpc_error(error, self._address) from None

    async def close(self) -> None:
        """Close the streams, then the channel."""
        await asyncio.gather(*(stream.close() for stream in self._streams.values()))
        await self._channel.close()

    def _stream(self, service: str) -> FrameStream:
        stream = self._streams.get(service)
        if stream is None or stream.broken:
            types = STREAMS[service]
            call: StreamCall = self._channel.stream_stream(
                types.path, response_deserializer=types.parse_response
            )()
            stream = self._streams[service] = FrameStream(call, types, self._address)
        return stream


class GrpcConnector:
    """Makes and keeps one ``GrpcConnection`` for each address. Implements ``Connector``."""

    def __init__(self, options: ChannelOptions | None = None) -> None:
        """Do no I/O yet."""
        self._arguments = (options or ChannelOptions()).as_channel_arguments()
        self._connections: dict[str, GrpcConnection] = {}

    def connect(self, address: str) -> GrpcConnection:
        """Return the connection to an address; see ``Connector.connect``."""
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = GrpcConnection(address, self._arguments)
        return connection

    async def close(self) -> None:
        """Close every connection."""
        connections, self._connections = list(self._connections.values()), {}
        await asyncio.gather(*(connection.close() for connection in connections))
