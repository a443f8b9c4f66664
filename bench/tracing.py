"""What tracing costs: the same transactions off, with none, 1 % and all sampled, taking turns.

None sampled is what the way of each transaction costs that is not recorded; what 1 % costs more
than that is what the spans of a hundredth do, their export included. Off again is the same as off:
how far the two are apart is what the figures of this run are worth. All sampled has rounds of its
own, since what it leaves to be exported would disturb whoever comes next.

Each has a cluster of its own, started in an order by chance; spans go to a collector in a process
of its own, which drops them. Its processor time does not count. Spans are exported every second
and not every five, so that each turn pays for its own.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from statistics import median
from unittest.mock import patch

from aiosemel import SemelClient
from aiosemel.tracing import open_telemetry
from bench.measure import Figure
from bench.turns import UNIT, Contender, percent_more, processor_times, producing
from semel_local import ProcessCluster


def _share(ratio: str) -> Mapping[str, str]:
    return {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": ratio}


_SAMPLED: Mapping[str, Mapping[str, str]] = {
    "off": {},
    "off again": {},
    "none": _share("0"),
    "1 %": _share("0.01"),
    "all": {"OTEL_TRACES_SAMPLER": "parentbased_always_on"},
}


_EXPORT: Mapping[str, str] = {"OTEL_BSP_SCHEDULE_DELAY": "1000"}
_REST_S = 1.5
_ROUNDS = 12
"""Rounds of those that are hard to tell apart; all sampled needs few."""


async def tracing() -> list[Figure]:
    """Measure each once."""
    few = await _used_ms(("off", "off again", "none", "1 %"), _ROUNDS)
    all_of_them = await _used_ms(("off", "all"), _ROUNDS // 4)
    times, more = [], []
    for used_ms in (few, all_of_them):
        for name in (name for name in _SAMPLED if name in used_ms):
            if name != "off":
                goal = "≤ 3" if name == "1 %" else ""
                share = percent_more(used_ms[name], used_ms["off"])
                more.append(Figure(name=f"{name}: more", value=share, unit="%", goal=goal))
            if name != "off" or used_ms is few:
                times.append(Figure(name=name, value=median(used_ms[name]), unit=UNIT))
    return [*times, *more]


async def _used_ms(names: Sequence[str], rounds: int) -> Mapping[str, Sequence[float]]:
    """Return what some of them computed in each round, on clusters that are started for it."""
    async with AsyncExitStack() as stack:
        endpoint = stack.enter_context(_collector())
        contenders = [
            await stack.enter_async_context(_contender(name, _SAMPLED[name], endpoint))
            for name in Random().sample(names, len(names))
        ]
        return await processor_times(contenders, rounds, _REST_S)


@asynccontextmanager
async def _contender(
    name: str, variables: Mapping[str, str], endpoint: str
) -> AsyncIterator[Contender]:
    export = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, **_EXPORT} if variables else {}
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        with patch.dict(os.environ, {**variables, **export}):
            telemetry = open_telemetry(os.environ, "bench")
            cluster = await stack.enter_async_context(ProcessCluster(Path(folder)))
        provider = None
        if telemetry is not None:
            stack.push_async_callback(telemetry.aclose)
            provider = telemetry.provider
        client = await stack.enter_async_context(
            SemelClient(cluster.bootstrap, tracer_provider=provider)
        )
        pids = tuple(cluster.pids().values())
        yield await stack.enter_async_context(producing(name, client, pids))


@contextmanager
def _collector() -> Iterator[str]:
    """Run a collector; yields its address."""
    command = [sys.executable, "-m", "semel_runtime.testing.collector"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.stdin.close()
