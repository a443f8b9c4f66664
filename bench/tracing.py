"""What tracing costs: the same transactions off, with 1 % sampled, and with all, taking turns.

Each turn has a cluster of its own; spans go to a collector in a process of its own, which drops
them. All of it shares the machine, so "all" pays for the collector too.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from aiosemel.tracing import open_telemetry
from bench.measure import Figure
from bench.transactions import many_producers, one_producer
from semel_local import ProcessCluster

_SAMPLED: Mapping[str, Mapping[str, str]] = {
    "off": {},
    "1 %": {
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.01",
    },
    "all": {"OTEL_TRACES_SAMPLER": "parentbased_always_on"},
}


async def tracing() -> list[Figure]:
    """Measure each once; the caller repeats it, so they alternate."""
    figures: list[Figure] = []
    with _collector() as endpoint:
        for name, variables in _SAMPLED.items():
            export = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint} if variables else {}
            figures += await _measure(name, {**variables, **export})
    rates = [each.value for each in figures if each.unit == "transactions/s"]
    per_turn = len(rates) // len(_SAMPLED)
    for turn, name in enumerate(_SAMPLED):
        if turn:
            share = 100 * (1 - rates[turn * per_turn] / rates[0])
            goal = "≤ 3" if name == "1 %" else ""
            figures.append(Figure(name=f"{name}: costs", value=share, unit="%", goal=goal))
    return figures


async def _measure(name: str, variables: Mapping[str, str]) -> list[Figure]:
    with patch.dict(os.environ, variables), tempfile.TemporaryDirectory() as folder:
        telemetry = open_telemetry(os.environ, "bench")
        provider = None if telemetry is None else telemetry.provider
        async with ProcessCluster(Path(folder)) as cluster:
            many = await many_producers(cluster.bootstrap, tracer_provider=provider)
            one = await one_producer(cluster.bootstrap, tracer_provider=provider)
        if telemetry is not None:
            await telemetry.aclose()
    return [
        Figure(name=f"{name}: {each.name}", value=each.value, unit=each.unit)
        for each in (*many, *one)
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
