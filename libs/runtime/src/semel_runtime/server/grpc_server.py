"""The server of a process: listeners, gRPC and frames, health, reflection, and the end."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import grpc
import structlog
from google.protobuf import descriptor_pool
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2
from opentelemetry.trace import Tracer

from semel.common.v1.frames_pb2 import OpenFramesRequest, OpenFramesResponse
from semel_common.errors import (
    NetworkExceptionError,
    SemelError,
    ThrottlingQuotaExceededError,
)
from semel_common.wire.channel_options import METADATA_LIMITS
from semel_common.wire.frames.frame_stream import LIMIT, STREAMS_LIMIT
from semel_common.wire.frames.pipe import Pipe
from semel_common.wire.frames.stream_messages import STREAMS
from semel_common.wire.methods import OPEN_FRAMES
from semel_runtime.authentication.listener_gate import Gate, ListenerSecurity
from semel_runtime.authentication.principal import Origin
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.server.calls import Call, Endpoint, Handlers
from semel_runtime.server.frames.frame_session import FrameSession
from semel_runtime.server.frames.grpc_frames import GrpcServerPipe, StreamContext
from semel_runtime.server.frames.socket_frames import FrameSockets
from semel_runtime.server.handler_call import answer
from semel_runtime.server.limits.caller_shares import Ledger
from semel_runtime.server.limits.connections_per_address import ConnectionsPerAddress
from semel_runtime.server.limits.long_polls import capped
from semel_runtime.server.limits.server_limits import ServerLimits
from semel_runtime.server.refusals import refuse
from semel_runtime.server.server_spans import ServerSpans
from semel_runtime.server.unary import UnaryEdge, unary_handlers

log = structlog.get_logger(__name__)

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
LIVENESS = "liveness"
"""The health name for restarts of hanging processes: SERVING as long as the process answers.

All other names say whether the service is ready, which may take until the controller is there.
"""


class GrpcServer:
    """Serves handlers on several listeners. ``bind``, then ``start``, then ``stop``."""

    def __init__(self, limits: ServerLimits, tracer: Tracer | None = None) -> None:
        """Do no I/O yet. Requests become spans of the tracer."""
        self._limits = limits
        self._answer = answer if tracer is None else ServerSpans(tracer).answer
        self._health = health.aio.HealthServicer()
        self._health_servers: list[grpc.aio.Server] = []
        self._service_names: list[str] = []
        self._servers: dict[str, grpc.aio.Server] = {}
        self._gates: dict[str, Gate] = {}
        self._endpoints: dict[str, dict[str, Endpoint[Message, Message]]] = {}
        self._ledger = Ledger(limits)
        self._sockets = FrameSockets(limits, self._ledger)
        self._ports: set[int] = set()
        self._connections = ConnectionsPerAddress(
            limits.grpc_connections_per_address_max, self._ports
        )
        self._sessions: set[FrameSession] = set()
        self._all_ended = asyncio.Event()

    def bind(self, listener: Listener, security: ListenerSecurity | None = None) -> Listener:
        """Bind a listener; returns it with its real port. Raises OSError when that fails.

        Without security, it is plain text, and all who call are anonymous.
        """
        gate = Gate(listener.name, security or ListenerSecurity())
        server = grpc.aio.server(
            options=_channel_arguments(self._limits),
            maximum_concurrent_rpcs=self._limits.concurrent_calls_max,
        )
        if gate.tls is None:
            port = _bind(server, listener.address)
        else:
            port = _bind(server, listener.address, gate.tls.grpc_credentials())
        self._ports.add(port)
        self._servers[listener.name] = server
        self._gates[listener.name] = gate
        return Listener(name=listener.name, host=listener.host, port=port)

    def bind_frames(self, listener: Listener, advertised: Listener | None = None) -> None:
        """Bind a port for the frames of a listener that is bound. Raises OSError.

        Clients are sent to ``advertised``; without, to this port at the host that they know.
        """
        self._sockets.bind(listener, advertised, self._gates[listener.name])

    def bind_health(self, address: str) -> int:
        """Bind ``host:port`` for health and nothing else; returns the port. Raises OSError."""
        server = grpc.aio.server(
            options=_channel_arguments(self._limits),
            maximum_concurrent_rpcs=self._limits.concurrent_calls_max,
        )
        port = _bind(server, address)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        self._health_servers.append(server)
        return port

    async def close(self) -> None:
        """Let go of the ports for frames, also those of a server that was never started."""
        await self._connections.stop()
        await self._sockets.close()

    async def start(self, handlers: Handlers) -> None:
        """Serve the handlers; health answers NOT_SERVING until ``set_serving``."""
        handlers.wrap(capped(self._limits.long_poll_max_ms))
        self._endpoints = _endpoints_by_stream(handlers)
        handlers.add(OPEN_FRAMES, self._open_frames)
        for name, server in self._servers.items():
            self._gates[name].belong_to(handlers.check_cluster)
            self._register(server, handlers, self._gates[name])
        await self._set_health(NOT_SERVING)
        await self._health.set(LIVENESS, SERVING)
        for server in self._all_servers():
            await server.start()
        self._sockets.start()
        self._connections.start()

    @property
    def stream_count(self) -> int:
        """Frame streams that are open."""
        return len(self._sessions)

    @property
    def requests_in_flight(self) -> int:
        """Requests that are not answered yet, of frame streams and unary."""
        return self._ledger.requests.held

    @property
    def bytes_in_flight(self) -> int:
        """Bytes that frame streams hold: of requests, answers and messages that are arriving."""
        return self._ledger.in_flight_bytes.held

    async def set_serving(self) -> None:
        """Let health answer SERVING."""
        await self._set_health(SERVING)

    async def stop(
        self,
        *,
        drain_ms: int,
        grace_ms: int,
        answer_parked: Callable[[], None] = lambda: None,
    ) -> None:
        """Stop in order: NOT_SERVING, serve on for ``drain_ms``, answer the calls in flight, close.

        ``answer_parked`` lets long polls answer. It is called once the server takes no calls any
        more: before, clients would ask again at once. Unanswered calls are cancelled ``grace_ms``
        later.
        """
        await self._set_health(NOT_SERVING)
        await asyncio.sleep(drain_ms / 1000)
        await self.close()
        answer_parked()
        for session in tuple(self._sessions):
            session.drain()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._until_all_ended(grace_ms / 1000), name="end frame streams")
            for server in self._all_servers():
                group.create_task(server.stop(grace_ms / 1000), name="stop server")

    async def abort(self) -> None:
        """Close at once: cancel the calls in flight, and answer none any more."""
        ends: list[Callable[[], Awaitable[None]]] = [
            *(partial(_abort, session) for session in tuple(self._sessions)),
            self.close,
            *(partial(server.stop, None) for server in self._all_servers()),
        ]
        async with asyncio.TaskGroup() as group:
            for end in ends:
                group.create_task(_end(end), name="abort server")

    @contextmanager
    def _in_flight(self, endpoint: Endpoint[Message, Message], origin: Origin) -> Iterator[None]:
        """Count a unary call for its caller. Raises ThrottlingQuotaExceededError without room.

        A call for a stream is no request: it does not wait, and streams have a limit of their own.
        """
        shares = self._ledger.of(origin)  # Held, so that the caller's other calls find the same.
        is_request = endpoint.method.path != OPEN_FRAMES.path
        taken = (shares.calls, shares.requests) if is_request else (shares.calls,)
        for limit in taken:
            if not limit.has_room():
                raise ThrottlingQuotaExceededError(
                    f"{endpoint.method.name} is not begun: {limit.why_full()}; wait for answers"
                )
        for limit in taken:
            limit.take()
        try:
            yield
        finally:
            for limit in taken:
                limit.give_back()

    # -- frames --------------------------------------------------------------------------------

    async def _open_frames(self, request: OpenFramesRequest, call: Call) -> OpenFramesResponse:
        if request.service not in self._endpoints:
            raise NetworkExceptionError(f"{request.service!r} is not here: this is another service")
        self._check_room(call.origin)
        offer = self._sockets.offer(call.origin, partial(self._session, request.service))
        offer.max_idle_ms = self._limits.connections_max_idle_ms
        return offer

    def _check_room(self, origin: Origin) -> None:
        streams = self._ledger.of(origin).streams
        if not streams.has_room():
            raise ThrottlingQuotaExceededError(
                f"no further frame stream is taken: {streams.why_full()}; make unary calls, or"
                " close streams",
                **{LIMIT: STREAMS_LIMIT},
            )

    def _session(self, service: str, origin: Origin, pipe: Pipe) -> FrameSession:
        """Open a session on a pipe. Raises ThrottlingQuotaExceededError."""
        self._check_room(origin)
        session = FrameSession(
            STREAMS[service],
            self._endpoints[service],
            pipe,
            origin=origin,
            limits=self._limits,
            shares=self._ledger.of(origin),
            answer=self._answer,
            ended=self._ended,
        )
        self._sessions.add(session)
        self._all_ended.clear()
        return session

    def _ended(self, session: FrameSession) -> None:
        self._sessions.discard(session)
        if not self._sessions:
            self._all_ended.set()

    async def _until_all_ended(self, timeout_s: float) -> None:
        """Wait for sessions to finish their answers; end the slow ones."""
        if self._sessions:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._all_ended.wait()
        for session in tuple(self._sessions):
            session.abort()

    def _all_servers(self) -> tuple[grpc.aio.Server, ...]:
        return (*self._servers.values(), *self._health_servers)

    # -- registration --------------------------------------------------------------------------

    def _register(self, server: grpc.aio.Server, handlers: Handlers, gate: Gate) -> None:
        services: dict[str, dict[str, grpc.RpcMethodHandler[bytes, Message]]] = defaultdict(dict)
        arrival_s = self._limits.arrival_timeout_ms / 1000
        edge = UnaryEdge(gate, self._answer, self._in_flight, arrival_s)
        for name, methods in unary_handlers(handlers, edge).items():
            services[name].update(methods)
        for name in self._endpoints:
            services[name]["Stream"] = self._stream_handler(name, gate)
        _check_complete(services)
        self._service_names = sorted(services)
        server.add_generic_rpc_handlers(
            tuple(
                grpc.method_handlers_generic_handler(name, methods)
                for name, methods in services.items()
            )
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        _add_reflection(server, self._service_names)

    def _stream_handler(self, service: str, gate: Gate) -> "grpc.RpcMethodHandler[bytes, Message]":
        async def stream(requests: AsyncIterator[bytes], context: StreamContext) -> None:
            try:
                origin = await gate.admit(context)
                self._check_room(origin)
            except SemelError as error:
                refusal = error.as_value()
            else:
                await GrpcServerPipe().serve(
                    requests, context, partial(self._session, service, origin)
                )
                return
            await refuse(context, refusal)

        return grpc.stream_stream_rpc_method_handler(stream)

    async def _set_health(self, value: int) -> None:
        for name in ("", *self._service_names):
            await self._health.set(name, value)


async def _abort(session: FrameSession) -> None:
    session.abort()


async def _end(end: Callable[[], Awaitable[None]]) -> None:
    """End a part of the server; if that fails, the end of the others goes on."""
    try:
        await end()
    except Exception:
        log.exception("a part of the server did not end in order")


def _bind(
    server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None = None
) -> int:
    try:
        if credentials is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}: in use, or not ours") from error


def _endpoints_by_stream(handlers: Handlers) -> dict[str, dict[str, Endpoint[Message, Message]]]:
    streams: dict[str, dict[str, Endpoint[Message, Message]]] = defaultdict(dict)
    for endpoint in handlers:
        if endpoint.method.stream is not None:
            streams[endpoint.method.stream][endpoint.method.field] = endpoint
    return streams


def _check_complete(services: Mapping[str, Mapping[str, object]]) -> None:
    """Every RPC that a served contract declares has a handler."""
    pool = descriptor_pool.Default()
    for name, methods in services.items():
        declared = {method.name for method in pool.FindServiceByName(name).methods}
        assert declared == set(methods), f"{name} lacks {sorted(declared ^ set(methods))}"


def _add_reflection(server: grpc.aio.Server, service_names: Sequence[str]) -> None:
    """Serve reflection as v1alpha, which grpcio has, and as v1, which has the same messages."""
    names = (*service_names, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    servicer = reflection.aio.ReflectionServicer(names)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "grpc.reflection.v1.ServerReflection", {"ServerReflectionInfo": handler}
            ),
        )
    )


def _channel_arguments(limits: ServerLimits) -> list[tuple[str, int]]:
    return [
        # Two processes on one port would share its calls without a word.
        ("grpc.so_reuseport", 0),
        ("grpc.max_send_message_length", limits.answer_size_max_bytes),
        ("grpc.max_receive_message_length", limits.message_size_max_bytes),
        *METADATA_LIMITS,
        # Also the time for the first bytes of HTTP/2, and without TLS.
        ("grpc.server_handshake_timeout_ms", limits.handshake_timeout_ms),
        ("grpc.max_allowed_incoming_connections", limits.grpc_connections_max),
        ("grpc.max_connection_idle_ms", limits.connections_max_idle_ms),
        ("grpc.max_concurrent_streams", limits.connection_calls_max),
        # By default, gRPC ends calls at random, as CANCELLED, from 1,000 calls on that wait here.
        ("grpc.server.max_pending_requests", limits.concurrent_calls_max),
        ("grpc.server.max_pending_requests_hard_limit", limits.concurrent_calls_max),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", limits.ping_interval_min_ms),
    ]
