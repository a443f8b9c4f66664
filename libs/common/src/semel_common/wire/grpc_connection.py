"""Connections to services: gRPC for every call, and frames for those of the hot path.

Where to take its frames, a service says by gRPC: at a port of their own, or on a Stream RPC. While
a service takes no further stream, all calls are unary.
"""

import asyncio
from functools import partial
from typing import TypeAlias

import grpc
from google.protobuf.message import Message

from semel.common.v1.frames_pb2 import OpenFramesRequest
from semel_common.client_errors import InvalidResponseError
from semel_common.errors import (
    NetworkExceptionError,
    RequestTimedOutError,
    SaslAuthenticationError,
    SemelError,
    ThrottlingQuotaExceededError,
)
from semel_common.library_log import get_logger
from semel_common.telemetry.trace_context import TRACEPARENT
from semel_common.wire import status
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.client_security import Certificates, ClientCredentials, Metadata, Security
from semel_common.wire.cluster_header import CLUSTER_ID
from semel_common.wire.diagnosis.call_diagnosis import CallTrouble
from semel_common.wire.frames.frame_stream import FrameStream, Opened
from semel_common.wire.frames.pipe import PipeUser
from semel_common.wire.frames.socket_pipe import SocketPipe
from semel_common.wire.frames.stream_messages import STREAMS
from semel_common.wire.frames.transport_choice import FramesOpening
from semel_common.wire.messages.message_pieces import Outgoing, message_of
from semel_common.wire.messages.response_parsing import parse
from semel_common.wire.methods import OPEN_FRAMES, Method, Req, Res
from semel_common.wire.stream_tokens import StreamTokens

_log = get_logger(__name__)

UnaryCallable: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[Message, bytes]"


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
        self._trouble = CallTrouble(address, options, credentials)
        self._frames = FramesOpening(address, options, credentials)
        self._streams: dict[tuple[str, str], FrameStream] = {}
        """By service, and by the cluster that their calls name: a stream names it once."""
        self._tokens = StreamTokens(credentials)
        self._left_streams: list[FrameStream] = []
        """Streams that end with the calls that they have, because there is a newer token."""
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
        if self._tokens.is_due((method.stream, cluster_id)):
            await self._leave_if_replaced(method.stream, cluster_id)
        stream = self._stream(method.stream, cluster_id)
        until = asyncio.get_running_loop().time() + timeout_ms / 1000
        try:
            return await stream.call(
                method, request, timeout_ms=timeout_ms, traceparent=traceparent
            )
        except RequestTimedOutError as error:
            raise self._trouble.late(error) from None
        except ThrottlingQuotaExceededError as error:
            if not stream.refused:
                raise
            self._note_refusal(method.stream, error)
        return await self._call_unary(method, request, _left_ms(until), traceparent, cluster_id)

    async def _call_unary(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        timeout_ms: int,
        traceparent: str,
        cluster_id: str,
    ) -> Res:
        beside = ((CLUSTER_ID, cluster_id),) if cluster_id else ()
        if traceparent:
            beside = (*beside, (TRACEPARENT, traceparent))
        shown = await self._credentials.metadata()
        try:
            return await self._send_unary(method, request, timeout_ms, (*shown, *beside))
        except SaslAuthenticationError as error:
            # The token may have been replaced just now, or its expiry cannot be read from it.
            newer = await self._credentials.metadata(at_once=True)
            if newer == shown:
                raise self._credentials.refused(error, shown) from None
        try:
            return await self._send_unary(method, request, timeout_ms, (*newer, *beside))
        except SaslAuthenticationError as error:
            raise self._credentials.refused(error, newer) from None

    async def _send_unary(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        timeout_ms: int,
        metadata: Metadata,
    ) -> Res:
        channel = await self._current_channel()
        # gRPC logs what a deserializer raises, and answers None. So it gives the bytes here.
        unary: UnaryCallable = channel.unary_unary(method.path, method.request.SerializeToString)
        until = asyncio.get_running_loop().time() + timeout_ms / 1000
        try:
            with self._trouble.watched():
                data = await unary(
                    message_of(method, request), timeout=timeout_ms / 1000, metadata=metadata
                )
        except grpc.aio.AioRpcError as error:
            raise await self._trouble.explained(
                error, method.name, channel, _left_ms(until)
            ) from None
        except grpc.aio.BaseError as error:
            raise status.from_library_error(error, self._address) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Not the caller was cancelled, but the call, with all others of a channel that closes.
            raise NetworkExceptionError(f"connection to {self._address} was closed") from None
        self._trouble.answered()
        answer = parse(method, data, self._address, self._bounds)
        if isinstance(answer, InvalidResponseError):
            del data  # An error keeps the frames that raise it, and all that is in them.
            raise answer
        return answer

    async def close(self) -> None:
        """Close the streams, then the channel."""
        async with asyncio.TaskGroup() as group:
            for stream in (*self._streams.values(), *self._left_streams):
                group.create_task(stream.close(), name=f"close stream to {self._address}")
        await self._trouble.close()
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
        arguments: list[tuple[str, int | str]] = [
            *self._options.as_channel_arguments(self._address)
        ]
        if certificates is None:
            return grpc.aio.insecure_channel(self._address, options=arguments)
        arguments += self._credentials.channel_arguments()
        return grpc.aio.secure_channel(self._address, certificates.channel, options=arguments)

    async def _metadata(self, cluster_id: str) -> Metadata:
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

    async def _leave_if_replaced(self, service: str, cluster_id: str) -> None:
        """Let the next call open a stream with the newer token, if there is one."""
        key = service, cluster_id
        stream = self._streams.get(key)
        if stream is not None and not stream.broken and await self._tokens.is_replaced(key):
            del self._streams[key]
            self._left_streams = [
                left_stream for left_stream in self._left_streams if not left_stream.broken
            ]
            self._left_streams.append(stream)

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
        self._tokens.opened((service, cluster_id), await self._credentials.metadata())
        offer = await self.call(
            OPEN_FRAMES,
            OpenFramesRequest(service=service),
            timeout_ms=self._options.connect_timeout_ms,
            cluster_id=cluster_id,
        )
        opened = await self._frames.open(
            service,
            offer,
            user,
            self._current_channel,
            partial(self._metadata, cluster_id),
        )
        if isinstance(opened.pipe, SocketPipe):
            self._unary_until.pop(service, None)
        return opened


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


def _left_ms(until: float) -> int:
    """Return the milliseconds until a moment of the event loop's clock, at least 1."""
    return max(1, int((until - asyncio.get_running_loop().time()) * 1000))
