"""How fast a cluster is ready, and how much memory it takes when idle."""

import tempfile
import time
from pathlib import Path

from bench.measure import Figure
from bench.processes import resident_mib
from semel_local import ProcessCluster


async def footprint() -> list[Figure]:
    """Start one instance of each service in a new folder, and look at them."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        async with ProcessCluster(Path(folder)) as cluster:
            ready_s = time.perf_counter() - started
            resident = sum(resident_mib(pid) for pid in cluster.pids().values())
    return [
        Figure(name="cluster ready", value=ready_s, unit="s", goal="≤ 2"),
        Figure(name="all services idle", value=resident, unit="MiB", goal="≤ 300"),
    ]
