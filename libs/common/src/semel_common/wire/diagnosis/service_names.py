"""Which of Semel's services is at an address: a client may have been given the wrong one."""

import asyncio
from typing import TypeAlias

import grpc

_CHECK = "/grpc.health.v1.Health/Check"
_SERVICES = {
    "coordinator": b"semel.coordinator.v1.ClusterService",
    "partition-broker": b"semel.broker.v1.BrokerService",
    "group-coordinator": b"semel.group.v1.GroupService",
}
"""A contract that only this service has. Health knows the contracts of a service by name."""
_NAME_FIELD = b"\n"
"""The tag of ``HealthCheckRequest.service``."""

_Check: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"


async def service_at(channel: grpc.aio.Channel, timeout_ms: int) -> str | None:
    """Return the service behind a channel; None if it is none of Semel's, or does not answer."""
    async with asyncio.TaskGroup() as group:
        asked = {
            name: group.create_task(_has(channel, contract, timeout_ms / 1000), name=name)
            for name, contract in _SERVICES.items()
        }
    return next((name for name, task in asked.items() if task.result()), None)


async def _has(channel: grpc.aio.Channel, contract: bytes, timeout_s: float) -> bool:
    # The names are shorter than 128 bytes, so their length is one byte.
    check: _Check = channel.unary_unary(_CHECK)
    try:
        await check(_NAME_FIELD + bytes((len(contract),)) + contract, timeout=timeout_s)
    except (grpc.aio.AioRpcError, grpc.aio.BaseError):
        return False
    return True
