"""What tracing costs: the same transactions off, with none, 1 % and all sampled, taking turns.

None sampled is what the way of each transaction costs that is not recorded; what 1 % costs more
than that is what the spans of a hundredth do, their export included. Each has a cluster of its own;
spans go to a collector in a process of its own, which drops them. Its processor time does not
count.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from unittest.mock import patch

from aiosemel import SemelClient
from aiosemel.tracing import open_telemetry
from bench.measure import Figure
from bench.turns import UNIT, Contender, nothing, processor_times, producing
from semel_local import ProcessCluster


def _share(ratio: str) -> Mapping[str, str]:
    return {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": ratio}


_SAMPLED: Mapping[str, Mapping[str, str]] = {
    "off": {},
    "none": _share("0"),
    "1 %": _share("0.01"),
    "all": {"OTEL_TRACES_SAMPLER": "parentbased_always_on"},
}


async def tracing() -> list[Figure]:
    """Measure each once."""
    async with AsyncExitStack() as stack:
        endpoint = stack.enter_context(_collector())
        contenders = [
            await stack.enter_async_context(_contender(name, variables, endpoint))
            for name, variables in _SAMPLED.items()
        ]
        used_ms = await processor_times(contenders)
    figures = [
        Figure(name=f"{name}: processor time", value=value, unit=UNIT)
        for name, value in used_ms.items()
    ]
    for name in list(_SAMPLED)[1:]:
        goal = "≤ 3" if name == "1 %" else ""
        share = 100 * (used_ms[name] / used_ms["off"] - 1)
        figures.append(
            Figure(name=f"{name}: processor time more", value=share, unit="%", goal=goal)
        )
    return figures


@asynccontextmanager
async def _contender(
    name: str, variables: Mapping[str, str], endpoint: str
) -> AsyncIterator[Contender]:
    export = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint} if variables else {}
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        with patch.dict(os.environ, {**variables, **export}):
            telemetry = open_telemetry(os.environ, "bench")
            cluster = await stack.enter_async_context(ProcessCluster(Path(folder)))
        provider = settle = None
        if telemetry is not None:
            stack.push_async_callback(telemetry.aclose)
            provider, settle = telemetry.provider, telemetry.force_flush
        client = await stack.enter_async_context(
            SemelClient(cluster.bootstrap, tracer_provider=provider)
        )
        pids = tuple(cluster.pids().values())
        yield await stack.enter_async_context(producing(name, client, pids, settle or nothing))


@contextmanager
def _collector() -> Iterator[str]:
    """Run a collector; yields its address."""
    command = [sys.executable, "-m", "semel_runtime.testing.collector"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.stdin.close()
