"""Where a curve is measured: a cluster of its own, a client, and calls below the SDK."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiosemel import SemelClient
from bench.growth.probe import Probe
from bench.growth.wire import Wire
from semel_common.wire.grpc_connection import GrpcConnector
from semel_local import ProcessCluster

VALUE = bytes(100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A cluster that runs."""

    cluster: ProcessCluster
    client: SemelClient
    wire: Wire
    probe: Probe


@asynccontextmanager
async def stage(folder: Path, *, brokers: int = 1) -> AsyncIterator[Stage]:
    """Run a cluster in a folder, which must be empty."""
    connector = GrpcConnector()
    async with (
        ProcessCluster(folder, brokers=brokers) as cluster,
        SemelClient(cluster.bootstrap) as client,
    ):
        wire = await Wire.find(client, connector, cluster.bootstrap)
        yield Stage(cluster=cluster, client=client, wire=wire, probe=Probe(cluster))
        await connector.close()
