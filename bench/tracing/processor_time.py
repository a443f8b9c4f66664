"""What tracing costs: the same transactions off, with none, 1 % and all sampled, taking turns.

None sampled shows the cost of an unrecorded transaction; the difference of 1 % to it is the cost of
the spans of a hundredth, their export included. Both use the same services, which record as their
client has decided: two clusters with the same work are some percent apart, as off and off again
tell. All sampled has rounds of its own, since its exports would disturb the next contender.

Two clients with the same work, even on the same services, differ by some 7 % from turn to turn, and
by 5 % from start to start: more than 1 % sampled does. So everything is started again and again,
and even so the figures are worth some percent; `tracing-instructions` tells less than one.

Spans go to a collector in a process of its own, which drops them; its processor time does not
count. A process exports every 5 s, as it does by default; after each turn, all rest for longer, so
that an export counts for its maker.
"""

import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from statistics import median
from unittest.mock import patch

from aiosemel import SemelClient
from aiosemel.tracing import open_telemetry
from bench.measure import Figure
from bench.tracing.sampled import ALL, NONE, OFF, ONE_PERCENT, collector
from bench.turns import UNIT, Contender, percent_more, processor_times, producing
from semel_local import ProcessCluster

_CLIENTS: Mapping[str, Mapping[str, str]] = {
    "off": OFF,
    "off again": OFF,
    "none": NONE,
    "1 %": ONE_PERCENT,
    "all": ALL,
}
_TRACED = "none"
"""Whose services the other clients that trace use, too."""
_REST_S = 5.5
_STARTS = 12
"""How often everything is started again."""
_ROUNDS = 2
"""After each start; all sampled has one."""


async def processor_time() -> list[Figure]:
    """Measure each once."""
    used_ms: dict[str, list[float]] = defaultdict(list)
    with collector() as export:
        for _ in range(_STARTS):
            for name, rounds in (await _started_anew(export)).items():
                used_ms[name] += rounds
    more = {
        "off again: more": percent_more(used_ms["off again"], used_ms["off"]),
        "none: more": percent_more(used_ms["none"], used_ms["off"]),
        "1 %: more": percent_more(used_ms["1 %"], used_ms["off"]),
        "1 %: more than none": percent_more(used_ms["1 %"], used_ms["none"]),
        "all: more": percent_more(used_ms["all"], used_ms["off, then all"]),
    }
    return [
        *(Figure(name=name, value=median(each), unit=UNIT) for name, each in used_ms.items()),
        *(
            Figure(name=name, value=share, unit="%", goal="≤ 3" if name == "1 %: more" else "")
            for name, share in more.items()
        ),
    ]


async def _started_anew(export: Mapping[str, str]) -> Mapping[str, Sequence[float]]:
    """Return what each computed for a transaction, in each round."""
    async with AsyncExitStack() as stack:
        contenders = await _contenders(stack, export)
        few = [contender for name, contender in contenders.items() if name != "all"]
        used_ms = await processor_times(few, _ROUNDS, _REST_S)
        rarely = await processor_times([contenders["off"], contenders["all"]], 1, _REST_S)
    return {**used_ms, "off, then all": rarely["off"], "all": rarely["all"]}


async def _contenders(stack: AsyncExitStack, export: Mapping[str, str]) -> Mapping[str, Contender]:
    """Start clusters, in an order by chance, and a client of each kind; return these."""
    own = [name for name in _CLIENTS if name == _TRACED or not _CLIENTS[name]]
    clusters = {}
    for name in Random().sample(own, len(own)):
        variables = {**_CLIENTS[name], **export} if name == _TRACED else {}
        clusters[name] = await _cluster(stack, variables)
    return {
        name: await _contender(stack, name, clusters.get(name, clusters[_TRACED]), export)
        for name in _CLIENTS
    }


async def _cluster(stack: AsyncExitStack, variables: Mapping[str, str]) -> ProcessCluster:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    with patch.dict(os.environ, variables):
        return await stack.enter_async_context(ProcessCluster(Path(folder)))


async def _contender(
    stack: AsyncExitStack, name: str, cluster: ProcessCluster, export: Mapping[str, str]
) -> Contender:
    variables = _CLIENTS[name]
    provider = None
    # What makes spans reads its sampler and its exporter's settings from the process's environment.
    with patch.dict(os.environ, {**variables, **export} if variables else {}):
        telemetry = open_telemetry(os.environ, "bench")
    if telemetry is not None:
        stack.push_async_callback(telemetry.aclose)
        provider = telemetry.provider
    client = await stack.enter_async_context(
        SemelClient(cluster.bootstrap, tracer_provider=provider)
    )
    pids = tuple(cluster.pids().values())
    return await stack.enter_async_context(producing(name, client, pids))
