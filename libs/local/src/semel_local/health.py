"""Wait until a service says that it is ready, by the health protocol of gRPC."""

import asyncio
from typing import TypeAlias

import grpc
from grpc_health.v1 import health_pb2 as pb

from semel_common.wire.channel_options import DIRECT
from semel_common.wire.client_security import ClientCredentials, Security

Watch: TypeAlias = (
    "grpc.aio.UnaryStreamMultiCallable[pb.HealthCheckRequest, pb.HealthCheckResponse]"
)

_RETRY_S = 0.02
_CHANNEL_ARGUMENTS = (
    DIRECT,
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 3_000),  # The time that an attempt is given.
    ("grpc.max_reconnect_backoff_ms", 50),
    ("grpc.use_local_subchannel_pool", 1),
)


async def wait_serving(address: str, security: Security | None = None) -> None:
    """Return as soon as the service at ``host:port`` answers SERVING; waits without end."""
    async with _channel(address, security) as channel:
        watch: Watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=pb.HealthCheckRequest.SerializeToString,
            response_deserializer=pb.HealthCheckResponse.FromString,
        )
        while True:
            if await _becomes_serving(watch):
                return
            await asyncio.sleep(_RETRY_S)


def _channel(address: str, security: Security | None) -> grpc.aio.Channel:
    credentials = ClientCredentials(security or Security(tls=False))
    certificates = credentials.certificates()
    if certificates is None:
        return grpc.aio.insecure_channel(address, options=_CHANNEL_ARGUMENTS)
    arguments = (*_CHANNEL_ARGUMENTS, *credentials.channel_arguments())
    return grpc.aio.secure_channel(address, certificates.channel, options=arguments)


async def _becomes_serving(watch: Watch) -> bool:
    """Follow its state until it is SERVING; False when the connection broke."""
    try:
        async for answer in watch(pb.HealthCheckRequest(), wait_for_ready=True):
            if answer.status == pb.HealthCheckResponse.SERVING:
                return True
    except (grpc.aio.AioRpcError, grpc.aio.BaseError):
        pass
    return False
