"""Connections to services: gRPC for every call, and frames for those of the hot path.

Where to take its frames, a service says by gRPC: at a port of their own, or on a Stream RPC. While
a service takes no further stream, all calls are unary.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import grpc
from google.protobuf.message import Message

from semel.common.v1.frames_pb2 import FramesPreface, OpenFramesRequest, OpenFramesResponse
from semel_common.addresses import PORT_MAX, is_host
from semel_common.client_errors import InvalidResponseError, SslAuthenticationError
from semel_common.errors import NetworkExceptionError, SemelError, ThrottlingQuotaExceededError
from semel_common.library_log import get_logger
from semel_common.tracing import TRACEPARENT
from semel_common.wire import status
from semel_common.wire.answers import ANSWER_SIZE_MAX_BYTES, ELEMENTS_MAX, AnswerBounds, parse
from semel_common.wire.clusters import CLUSTER_ID
from semel_common.wire.frame_stream import FrameStream, Opened
from semel_common.wire.grpc_pipe import GrpcPipe, StreamCall
from semel_common.wire.methods import OPEN_FRAMES, Method, Req, Res
from semel_common.wire.pieces import Outgoing, message_of
from semel_common.wire.pipe import Pipe, PipeUser
from semel_common.wire.security import Certificates, ClientCredentials, Security
from semel_common.wire.socket_pipe import ClientTls, SocketOptions, connect
from semel_common.wire.streams import STREAMS
from semel_common.wire.tls_probe import Contexts, TlsProbe

_log = get_logger(__name__)
_LOST = NetworkExceptionError
_TICKET_MAX_BYTES = 4_096
_SHOWN_CHARACTERS = 100

UnaryCallable: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[Message, bytes]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOptions:
    """How channels are made."""

    message_size_max_bytes: int = ANSWER_SIZE_MAX_BYTES
    """The largest message that is sent or taken. A service refuses requests before they are so
    large, and a cluster's metadata may come to it."""
    message_elements_max: int = ELEMENTS_MAX
    """How many fields, at all levels, and numbers in lists a message may hold that is taken. An
    element takes up to some 300 bytes of memory, so a message of few bytes may take much."""
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
    refused_stream_pause_ms: int = 30_000
    """How long calls are unary after a server has refused a frame stream for its limits."""

    def as_bounds(self) -> AnswerBounds:
        """Return the bounds of what is taken."""
        return AnswerBounds(
            size_max_bytes=self.message_size_max_bytes, elements_max=self.message_elements_max
        )

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
        self._bounds = options.as_bounds()
        self._credentials = credentials
        self._certificates = credentials.certificates()
        self._channel = self._new_channel(self._certificates)
        self._left: grpc.aio.Channel | None = None
        self._probe = TlsProbe(address)
        self._was_answered = False
        self._streams: dict[tuple[str, str], FrameStream] = {}
        """By service, and by the cluster that their calls name: a stream names it once."""
        self._unary_until: dict[str, float] = {}
        """By service: when to try a stream again that was refused, in event-loop time (seconds)."""

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
        if method.stream is None or self._is_refused(method.stream):
            return await self._call_unary(method, request, timeout_ms, traceparent, cluster_id)
        stream = self._stream(method.stream, cluster_id)
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_ms / 1000
        try:
            return await stream.call(
                method, request, timeout_ms=timeout_ms, traceparent=traceparent
            )
        except ThrottlingQuotaExceededError as error:
            if not stream.refused:
                raise
            self._note_refusal(method.stream, error)
        left_ms = max(1, int((until - loop.time()) * 1000))
        return await self._call_unary(method, request, left_ms, traceparent, cluster_id)

    async def _call_unary(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        timeout_ms: int,
        traceparent: str,
        cluster_id: str,
    ) -> Res:
        metadata = await self._metadata(cluster_id)
        if traceparent:
            metadata = (*metadata, (TRACEPARENT, traceparent))
        channel = await self._current_channel()
        # gRPC logs what a deserializer raises, and answers None. So it gives the bytes here.
        unary: UnaryCallable = channel.unary_unary(method.path, method.request.SerializeToString)
        try:
            data = await unary(
                message_of(method, request), timeout=timeout_ms / 1000, metadata=metadata
            )
        except grpc.aio.AioRpcError as error:
            raise await self._failed(error, timeout_ms) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Not the caller was cancelled, but the call, with all others of a channel that closes.
            raise NetworkExceptionError(f"connection to {self._address} was closed") from None
        self._was_answered = True
        answer = parse(method, data, self._address, self._bounds)
        if isinstance(answer, InvalidResponseError):
            del data  # An error keeps the frames that raise it, and all that is in them.
            raise answer
        return answer

    async def _failed(self, failed: grpc.aio.AioRpcError, timeout_ms: int) -> SemelError:
        """Return the error of a call that failed; if TLS is the cause, what is wrong with it."""
        error = status.from_rpc_error(failed, self._address)
        certificates = self._certificates
        is_probed = certificates is not None or not self._was_answered
        if failed.code() is grpc.StatusCode.UNAVAILABLE and type(error) is _LOST and is_probed:
            contexts = (
                None
                if certificates is None
                else Contexts(certificates.context, certificates.any_name)
            )
            name = self._credentials.server_name(self._address)
            trouble = await self._probe.trouble(contexts, name, timeout_ms)
            if trouble is not None:
                return SslAuthenticationError(trouble, address=self._address)
        return error

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
            stream = self._streams[key] = FrameStream(
                open_pipe, STREAMS[service], self._address, self._bounds
            )
        return stream

    def _is_refused(self, service: str) -> bool:
        until = self._unary_until.get(service)
        return until is not None and asyncio.get_running_loop().time() < until

    def _note_refusal(self, service: str, error: SemelError) -> None:
        """Try a stream again later; of refusals without a stream between them, log the first."""
        if service not in self._unary_until:
            _log.warning("calls to %s are unary for now: %s", self._address, error.message)
        pause_s = self._options.refused_stream_pause_ms / 1000
        self._unary_until[service] = asyncio.get_running_loop().time() + pause_s

    async def _open_pipe(self, service: str, cluster_id: str, user: PipeUser) -> Opened:
        offer = await self.call(
            OPEN_FRAMES,
            OpenFramesRequest(service=service),
            timeout_ms=self._options.connect_timeout_ms,
            cluster_id=cluster_id,
        )
        check_offer(offer, self._address)
        if offer.port:
            try:
                pipe = await self._connect(offer, user)
                self._unary_until.pop(service, None)
                return Opened(pipe, offer.max_idle_ms)
            except (OSError, UnicodeError) as error:  # UnicodeError: a host that no resolver takes
                _log.warning(
                    "frames of %s go over gRPC: port %d cannot be reached (%s)",
                    self._address,
                    offer.port,
                    error,
                )
        metadata = await self._metadata(cluster_id)
        channel = await self._current_channel()
        call: StreamCall = channel.stream_stream(STREAMS[service].path)(metadata=metadata)
        return Opened(GrpcPipe(call, user, self._address), offer.max_idle_ms)

    async def _connect(self, offer: OpenFramesResponse, user: PipeUser) -> Pipe:
        """Connect to the port. Raises OSError, of which TimeoutError is one, and UnicodeError."""
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


def check_offer(offer: OpenFramesResponse, address: str) -> None:
    """Raise InvalidResponseError for a place where nothing can be connected to."""
    wrong: dict[str, str | int] = {}
    if not 0 <= offer.port <= PORT_MAX:
        wrong = {"port": offer.port}
    elif offer.host and not is_host(offer.host):
        wrong = {"host": repr(offer.host[:_SHOWN_CHARACTERS])}
    elif len(offer.ticket) > _TICKET_MAX_BYTES:
        wrong = {"ticket": f"of {len(offer.ticket):,} bytes"}
    for field, value in wrong.items():
        raise InvalidResponseError(
            f"{address} answered OpenFrames with {field} {value}",
            address=address,
            rpc="OpenFrames",
            field=field,
        )
