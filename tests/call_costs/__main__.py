"""``python -m call_costs``: a table of the cost of refused calls, for each RPC and transport."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
from google.protobuf.message import Message

from call_costs.measure import Cost, Process, frame_fields, framed, unary, worst
from semel.coordinator.v1.cluster_pb2 import MetadataRequest, MetadataResponse
from semel_common.wire import methods
from semel_common.wire.client_security import ClientCredentials
from semel_common.wire.methods import Method
from semel_local import ProcessCluster
from semel_local.layout import Role

CPU_MAX_MS = 2_000
"""A refused call that takes more is an offence, whatever the machine: the worst takes a tenth."""
HELD_MAX_BYTES = 256 << 20
"""The same of memory: the allocator keeps what some messages of the largest size took."""

_ROLES = {1: "coordinator-0", 2: "broker-0", 3: "group-coordinator-0"}
_SERVICES = {
    methods.TRANSACTIONS: "coordinator-0",
    methods.CLUSTER: "coordinator-0",
    methods.BROKER: "broker-0",
    methods.PARTICIPANT: "broker-0",
    methods.GROUP: "group-coordinator-0",
    methods.FRAMES: "broker-0",
}
_METHODS = [var for var in vars(methods).values() if isinstance(var, Method)]


def main() -> int:
    """Print the table, and answer whether every call kept within the bounds."""
    return asyncio.run(_measure_all())


async def _measure_all() -> int:
    over = 0
    print(_row("RPC", "transport", "bytes in", "processor ms", "KiB held", "answer", "the message"))
    with TemporaryDirectory(prefix="call-costs-") as folder:
        settings = {role: {"authorizer": "acls"} for role in Role}
        async with ProcessCluster(Path(folder), tls=True, settings=settings) as cluster:
            async for method, transport, cost in _costs(cluster):
                over += cost.cpu_ms > CPU_MAX_MS or cost.held_bytes > HELD_MAX_BYTES
                print(_shown(method, transport, cost), flush=True)
    return bool(over)


async def _costs(
    cluster: ProcessCluster,
) -> AsyncIterator[tuple[Method[Message, Message], str, Cost]]:
    """Yield the most costly message of each method over each transport."""
    addresses, pids = await _addresses(cluster), cluster.pids()
    for method in _METHODS:
        name = _SERVICES[method.stream or method.service]
        process = Process(pids[name])
        async with _channel(cluster, addresses[name]) as channel:
            for cost in await worst(method, unary(channel, method), process):
                yield method, "unary", cost
            for stream, number in frame_fields(method):
                async with framed(channel, stream) as send:
                    for cost in await worst(method, send, process, number):
                        yield method, "frame", cost


def _channel(cluster: ProcessCluster, address: str) -> grpc.aio.Channel:
    assert cluster.security is not None, "the cluster has certificates"
    credentials = ClientCredentials(cluster.security)
    certificates = credentials.certificates()
    assert certificates is not None, "the cluster has certificates"
    unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    arguments = [*unlimited, *credentials.channel_arguments()]
    return grpc.aio.secure_channel(address, certificates.channel, options=arguments)


async def _addresses(cluster: ProcessCluster) -> dict[str, str]:
    async with _channel(cluster, cluster.bootstrap) as channel:
        ask: grpc.aio.UnaryUnaryMultiCallable[MetadataRequest, MetadataResponse] = (
            channel.unary_unary(
                methods.METADATA.path,
                MetadataRequest.SerializeToString,
                MetadataResponse.FromString,
            )
        )
        metadata = await ask(MetadataRequest())
    return {
        _ROLES[instance.role]: f"{instance.host}:{instance.port}" for instance in metadata.instances
    }


def _shown(method: Method[Message, Message], transport: str, cost: Cost) -> str:
    return _row(
        method.name,
        transport,
        f"{cost.size_bytes:,}",
        f"{cost.cpu_ms:,.1f}",
        f"{max(0, cost.held_bytes) >> 10:,}",
        cost.answer,
        cost.what,
    )


def _row(*cells: str) -> str:
    return "{:<30} {:<9} {:>12} {:>12} {:>9}  {:<32} {}".format(*cells)


if __name__ == "__main__":
    sys.exit(main())
