"""What tracing costs: the same transactions off, with 1 % sampled, and with all, taking turns.

Each turn has a cluster of its own; spans go to a collector in a process of its own, which drops
them. Its processor time does not count.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from aiosemel import SemelClient
from aiosemel.tracing import open_telemetry
from bench.clients.semel.run import measure
from bench.measure import Figure
from bench.processes import processor_s
from bench.workloads import transactions
from semel_local import ProcessCluster

_CPU = "ms/transaction"
_SAMPLED: Mapping[str, Mapping[str, str]] = {
    "off": {},
    "1 %": {
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.01",
    },
    "all": {"OTEL_TRACES_SAMPLER": "parentbased_always_on"},
}


PRODUCERS = 64


async def tracing() -> list[Figure]:
    """Measure each once; the caller repeats it, so they alternate."""
    figures: list[Figure] = []
    with _collector() as endpoint:
        for name, variables in _SAMPLED.items():
            export = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint} if variables else {}
            figures += await _measure(name, {**variables, **export})
    off, *others = (each.value for each in figures if each.unit == _CPU)
    for name, value in zip(list(_SAMPLED)[1:], others, strict=True):
        goal = "≤ 3" if name == "1 %" else ""
        share = 100 * (value / off - 1)
        figures.append(
            Figure(name=f"{name}: processor time more", value=share, unit="%", goal=goal)
        )
    return figures


async def _measure(name: str, variables: Mapping[str, str]) -> list[Figure]:
    """Return the rate, and what the client and all services have computed for a transaction.

    That does not depend on who else uses the machine, as times of day do.
    """
    with patch.dict(os.environ, variables), tempfile.TemporaryDirectory() as folder:
        telemetry = open_telemetry(os.environ, "bench")
        provider = None if telemetry is None else telemetry.provider
        async with ProcessCluster(Path(folder)) as cluster:
            pids = (os.getpid(), *cluster.pids().values())
            before = sum(map(processor_s, pids))
            async with SemelClient(cluster.bootstrap, tracer_provider=provider) as client:
                sample = await measure(client, transactions(PRODUCERS), warm_up_s=0.0)
            used_s = sum(map(processor_s, pids)) - before
        if telemetry is not None:
            await telemetry.aclose()
    used_ms = used_s * 1000 / sample.transactions
    rate = sample.transactions / sample.elapsed_s
    return [
        Figure(name=f"{name}: {PRODUCERS} producers", value=rate, unit="transactions/s"),
        Figure(name=f"{name}: processor time", value=used_ms, unit=_CPU),
    ]


@contextmanager
def _collector() -> Iterator[str]:
    """Run a collector; yields its address."""
    command = [sys.executable, "-m", "semel_runtime.testing.collector"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.stdin.close()
