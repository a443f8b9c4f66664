"""Connections to services: gRPC for every call, and frames for those of the hot path.

Where to take its frames, a service says by gRPC: at a port of their own, or on a Stream RPC.
"""

import asyncio
from dataclasses import dataclass
from functools import partial

import grpc

from semel.common.v1.frames_pb2 import FramesPreface, OpenFramesRequest, OpenFramesResponse
from semel_common.errors import NetworkExceptionError
from semel_common.library_log import get_logger
from semel_common.tracing import TRACEPARENT
from semel_common.wire import status
from semel_common.wire.clusters import CLUSTER_ID
from semel_common.wire.frame_stream import FrameStream
from semel_common.wire.grpc_pipe import GrpcPipe, StreamCall
from semel_common.wire.methods import OPEN_FRAMES, Method, Req, Res
from semel_common.wire.pieces import Outgoing, message_of
from semel_common.wire.pipe import Pipe, PipeUser
from semel_common.wire.security import Certificates, ClientCredentials, Security
from semel_common.wire.socket_pipe import ClientTls, SocketOptions, connect
from semel_common.wire.streams import STREAMS

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOptions:
    """How channels are made."""

    message_size_max_bytes: int = 64 << 20
    """The largest message that is sent or taken."""
    reconnect_backoff_max_ms: int = 1_000
    """How long gRPC waits at most between attempts to connect."""
    resolution_interval_ms: int = 1_000
    """How long a name's address is used at least, when it cannot be reached there."""
    attempt_timeout_ms: int = 3_000
    """How long one such attempt may take: TCP, TLS and the first bytes of HTTP/2."""
    keepalive_time_ms: int = 30_000
    """How long a connection is silent before it is probed."""
    keepalive_timeout_ms: int = 10_000
    """How long the answer to a probe may take before the connection counts as lost."""
    connect_timeout_ms: int = 10_000
    """How long the connection for frames may take to be made."""

    def as_socket_options(self) -> SocketOptions:
        """Return the same for the connection that carries frames."""
        return SocketOptions(
            message_size_max_bytes=self.message_size_max_bytes,
            silence_max_s=self.keepalive_time_ms / 1000,
            answer_max_s=self.keepalive_timeout_ms / 1000,
        )

    def as_channel_arguments(self) -> list[tuple[str, int]]:
        """Return gRPC's own names and values."""
        return [
            ("grpc.max_send_message_length", self.message_size_max_bytes),
            ("grpc.max_receive_message_length", self.message_size_max_bytes),
            ("grpc.initial_reconnect_backoff_ms", 50),
            # No backoff in spite of its name: the least time that an attempt is given.
            ("grpc.min_reconnect_backoff_ms", self.attempt_timeout_ms),
            ("grpc.max_reconnect_backoff_ms", self.reconnect_backoff_max_ms),
            # By default 30 s, in which a restarted pod would be looked for where it was.
            ("grpc.dns_min_time_between_resolutions_ms", self.resolution_interval_ms),
            ("grpc.keepalive_time_ms", self.keepalive_time_ms),
            ("grpc.keepalive_timeout_ms", self.keepalive_timeout_ms),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            # Two connectors of one process must not share a connection: each closes its own.
            ("grpc.use_local_subchannel_pool", 1),
        ]


class GrpcConnection:
    """A channel to one address with the frame streams on it. Implements ``Connection``."""

    def __init__(
        self, address: str, options: ChannelOptions, credentials: ClientCredentials
    ) -> None:
        """Make the channel; it connects when first used."""
        self._address = address
        self._options = options
        self._credentials = credentials
        self._certificates = credentials.certificates()
        self._channel = self._new_channel(self._certificates)
        self._left: grpc.aio.Channel | None = None
        self._streams: dict[tuple[str, str], FrameStream] = {}
        """By service, and by the cluster that their calls name: a stream names it once."""

    async def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
        cluster_id: str = "",
    ) -> Res:
        """Make one call; see ``Connection.call``."""
        if method.stream is not None:
            return await self._stream(method.stream, cluster_id).call(
                method, request, timeout_ms=timeout_ms, traceparent=traceparent
            )
        metadata = await self._metadata(cluster_id)
        if traceparent:
            metadata = (*metadata, (TRACEPARENT, traceparent))
        channel = await self._current_channel()
        unary = channel.unary_unary(
            method.path, method.request.SerializeToString, method.response.FromString
        )
        try:
            return await unary(
                message_of(method, request), timeout=timeout_ms / 1000, metadata=metadata
            )
        except grpc.aio.AioRpcError as error:
            raise status.from_rpc_error(error, self._address) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Not the caller was cancelled, but the call, with all others of a channel that closes.
            raise NetworkExceptionError(f"connection to {self._address} was closed") from None

    async def close(self) -> None:
        """Close the streams, then the channel."""
        async with asyncio.TaskGroup() as group:
            for stream in self._streams.values():
                group.create_task(stream.close(), name=f"close stream to {self._address}")
        await self._channel.close()
        if self._left is not None:
            await self._left.close()

    async def _current_channel(self) -> grpc.aio.Channel:
        """Return the channel, or another one once there are other certificates.

        The one before goes on with the calls that it has; it is closed when the next one comes.
        """
        certificates = self._credentials.certificates()
        if certificates is not self._certificates:
            self._certificates = certificates
            closed, self._left = self._left, self._channel
            self._channel = self._new_channel(certificates)
            if closed is not None:
                await closed.close()
        return self._channel

    def _new_channel(self, certificates: Certificates | None) -> grpc.aio.Channel:
        arguments: list[tuple[str, int | str]] = [*self._options.as_channel_arguments()]
        if certificates is None:
            return grpc.aio.insecure_channel(self._address, options=arguments)
        arguments += self._credentials.channel_arguments()
        return grpc.aio.secure_channel(self._address, certificates.channel, options=arguments)

    async def _metadata(self, cluster_id: str) -> tuple[tuple[str, str], ...]:
        credentials = await self._credentials.metadata()
        return (*credentials, (CLUSTER_ID, cluster_id)) if cluster_id else credentials

    def _stream(self, service: str, cluster_id: str) -> FrameStream:
        key = service, cluster_id
        stream = self._streams.get(key)
        if stream is None or stream.broken:
            open_pipe = partial(self._open_pipe, service, cluster_id)
            stream = self._streams[key] = FrameStream(open_pipe, STREAMS[service], self._address)
        return stream

    async def _open_pipe(self, service: str, cluster_id: str, user: PipeUser) -> Pipe:
        offer = await self.call(
            OPEN_FRAMES,
            OpenFramesRequest(service=service),
            timeout_ms=self._options.connect_timeout_ms,
            cluster_id=cluster_id,
        )
        if offer.port:
            try:
                return await self._connect(offer, user)
            except OSError as error:
                _log.warning(
                    "frames of %s go over gRPC: port %d cannot be reached (%s)",
                    self._address,
                    offer.port,
                    error,
                )
        metadata = await self._metadata(cluster_id)
        channel = await self._current_channel()
        call: StreamCall = channel.stream_stream(STREAMS[service].path)(metadata=metadata)
        return GrpcPipe(call, user, self._address)

    async def _connect(self, offer: OpenFramesResponse, user: PipeUser) -> Pipe:
        """Connect to the port. Raises OSError, of which TimeoutError is one."""
        host = offer.host or self._address.rpartition(":")[0].strip("[]")
        preface = FramesPreface(ticket=offer.ticket).SerializeToString()
        async with asyncio.timeout(self._options.connect_timeout_ms / 1000):
            return await connect(
                host, offer.port, preface, user, self._options.as_socket_options(), self._tls()
            )

    def _tls(self) -> ClientTls | None:
        """Return how the socket is encrypted: if the channel is, and to the same server.

        Whose host it is says the server itself, so its name is the one that the channel is for.
        """
        certificates = self._credentials.certificates()
        if certificates is None:
            return None
        return ClientTls(certificates.context, self._credentials.server_name(self._address))


class GrpcConnector:
    """Makes and keeps one ``GrpcConnection`` for each address. Implements ``Connector``."""

    def __init__(
        self, options: ChannelOptions | None = None, security: Security | None = None
    ) -> None:
        """Read the files of the security, if any; raises InvalidConfigError."""
        self._options = options or ChannelOptions()
        self._credentials = ClientCredentials(security or Security(tls=False))
        self._connections: dict[str, GrpcConnection] = {}

    def connect(self, address: str) -> GrpcConnection:
        """Return the connection to an address; see ``Connector.connect``.

        Raises InvalidConfigError rather than send a token there in clear text.
        """
        connection = self._connections.get(address)
        if connection is None:
            self._credentials.check(address)
            connection = GrpcConnection(address, self._options, self._credentials)
            self._connections[address] = connection
        return connection

    async def close(self) -> None:
        """Close every connection."""
        connections, self._connections = self._connections, {}
        async with asyncio.TaskGroup() as group:
            for address, connection in connections.items():
                group.create_task(connection.close(), name=f"close connection to {address}")
