"""A real gRPC server on loopback with group-coordinator handlers that a test scripts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

import pytest
from google.protobuf.message import Message

from semel.group.v1 import group_pb2 as group
from semel_common.wire import methods
from semel_common.wire.client_security import Security
from semel_common.wire.grpc_connection import GrpcConnection, GrpcConnector
from semel_common.wire.methods import GROUP, TXN_OFFSET_COMMIT, Method
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.grpc_server import GrpcServer
from semel_runtime.server.limits.server_limits import ServerLimits

Request = group.TxnOffsetCommitRequest
Response = group.TxnOffsetCommitResponse

UNARY = Method(GROUP, "TxnOffsetCommit", Request, Response)
"""The same RPC, but never in a frame."""
TRANSPORTS = pytest.mark.parametrize(
    ("method", "sockets"),
    [(UNARY, True), (TXN_OFFSET_COMMIT, True), (TXN_OFFSET_COMMIT, False)],
    ids=["unary", "sockets", "grpc"],
)

Commit = Callable[[group.TxnOffsetCommitRequest, Call], Awaitable[group.TxnOffsetCommitResponse]]

GROUP_METHODS: list[Method[Message, Message]] = [
    var
    for var in vars(methods).values()
    if isinstance(var, Method)
    and var.service in (methods.GROUP, methods.PARTICIPANT)
    and var is not methods.BROKER_WRITE_TXN_MARKERS
]
"""All that a group coordinator answers."""


async def echo(request: Request, _: Call) -> Response:
    """Answer the sequence as the throttle time."""
    return Response(throttle_time_ms=request.base_sequence)


@dataclass
class Served:
    """A running server and a connection to it."""

    server: GrpcServer
    address: str
    connection: GrpcConnection
    calls: list[Call] = field(default_factory=list)


@asynccontextmanager
async def serving(
    commit: Commit,
    limits: ServerLimits | None = None,
    *,
    sockets: bool = True,
    frames_at: Listener | None = None,
    listener: ListenerSecurity | None = None,
    client: Security | None = None,
    answers: Mapping[str, Message] = MappingProxyType({}),
    cluster_id: Callable[[], str] | None = None,
) -> AsyncIterator[Served]:
    """Serve ``commit`` as TxnOffsetCommit; other methods answer as told, or an empty response.

    Frames go over sockets, which clients find at ``frames_at``, or else over gRPC. The connection
    has the client's security.
    """
    server = GrpcServer(limits or ServerLimits())
    bound = server.bind(Listener(name="default", host="127.0.0.1", port=0), listener)
    if sockets:
        server.bind_frames(Listener(name="default", host="127.0.0.1", port=0), frames_at)
    connector = GrpcConnector(security=client)
    served = Served(server, bound.address, connector.connect(bound.address))
    handlers = Handlers(cluster_id=cluster_id)
    for method in GROUP_METHODS:
        if method.name != "TxnOffsetCommit":
            handlers.add(method, answering(answers.get(method.name) or method.response()))

    async def recorded(
        request: group.TxnOffsetCommitRequest, call: Call
    ) -> group.TxnOffsetCommitResponse:
        served.calls.append(call)
        return await commit(request, call)

    handlers.add(methods.TXN_OFFSET_COMMIT, recorded)
    await server.start(handlers)
    await server.set_serving()
    try:
        yield served
    finally:
        await connector.close()
        await server.stop(drain_ms=0, grace_ms=1_000)


def answering(response: Message) -> Callable[[Message, Call], Awaitable[Message]]:
    async def handler(request: Message, call: Call) -> Message:  # noqa: ARG001 - a handler's shape
        await asyncio.sleep(0)
        return response

    return handler
