"""The program that uses the port of `semel up`: often an own cluster that was forgotten."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from semel_cli.local.running_clusters import RunningCluster, read_running

LOOK_TIMEOUT_MS = 1_000
"""How long a program at the port has to say that it is a cluster."""


@asynccontextmanager
async def named_port_user() -> AsyncIterator[None]:
    """Let a PortInUseError name the cluster that uses the port, if a cluster does."""
    from semel_local.errors import PortInUseError

    try:
        yield
    except PortInUseError as error:
        user = _own_cluster(error.port) or await _any_cluster(error.port)
        if user is None:
            raise
        raise PortInUseError(error.port, user) from None


def _own_cluster(port: int) -> str | None:
    """Return the folder of this user's cluster of which a service listens at the port."""
    for cluster in read_running():
        if cluster.is_alive and port in _ports(cluster):
            return f"the cluster that `semel up` runs in {cluster.folder}"
    return None


def _ports(cluster: RunningCluster) -> set[int]:
    from semel_local.errors import FolderError
    from semel_local.layout import read_layout

    ports = {int(cluster.bootstrap.rpartition(":")[2])}
    try:
        layout = read_layout(Path(cluster.folder))
    except FolderError:
        return ports  # Its folder was removed or damaged since; the address is known without it.
    return ports if layout is None else {*ports, *layout.ports.values()}


async def _any_cluster(port: int) -> str | None:
    """Return the id of a cluster of which a coordinator answers at the port."""
    from aiosemel import ClientOptions, SemelClient
    from aiosemel.errors import SemelError

    options = ClientOptions(
        request_timeout_ms=LOOK_TIMEOUT_MS, default_api_timeout_ms=LOOK_TIMEOUT_MS
    )
    try:
        async with SemelClient(f"127.0.0.1:{port}", options=options) as client:
            found = await client.admin().describe_cluster()
    except SemelError:
        return None  # Another program, or a cluster that answers only users whom it knows.
    return f"the Semel cluster {found.cluster_id}"
