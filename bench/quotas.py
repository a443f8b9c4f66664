"""Does one greedy client slow the others? A polite one is timed beside it, with and without quota.

The polite client sends one record after the other. The greedy one, a process of its own that does
not wait as it is told, sends 64 KiB at a time to another partition of the same broker.
"""

import asyncio
import json
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiosemel import SemelClient
from bench.identities import Identities
from bench.measure import Figure, percentile
from semel_local import ProcessCluster
from semel_local.layout import Role

SECONDS = 4.0
WARM_UP = 50
VALUE = bytes(100)
RATE = 1_000_000
"""Bytes per second that the greedy client may send."""
SETTINGS = {
    "authorizer": "acls",
    "super_users": "User:admin;User:polite;User:greedy",
    "quota_debt_max_ms": "1000",
}


async def quotas() -> list[Figure]:
    """Time a polite client alone, beside a greedy one, and beside a greedy one with a quota."""
    with tempfile.TemporaryDirectory() as files, tempfile.TemporaryDirectory() as folder:
        identities = Identities.make(Path(files))
        settings = {role: {**identities.settings(), **SETTINGS} for role in Role}
        admin, polite = identities.user("admin"), identities.user("polite")
        async with (
            ProcessCluster(Path(folder), security=admin, settings=settings) as cluster,
            SemelClient(cluster.bootstrap, security=admin) as others,
            SemelClient(cluster.bootstrap, security=polite) as client,
        ):
            for topic in ("polite", "greedy"):
                await others.admin().create_topic(topic)
            greedy = (cluster.address("broker-0"), str(identities.certificates.ca))
            return await _beside(client, others, (*greedy, identities.token("greedy")))


async def _beside(client: SemelClient, others: SemelClient, greedy: Sequence[str]) -> list[Figure]:
    alone = await _times(client)
    figures = _figures("alone", alone)
    async with _greedy(greedy) as counts:
        figures += _figures("beside a greedy client", await _times(client), alone)
    figures += _rate("greedy client", counts)
    access = others.admin().access
    await access.alter_client_quotas("greedy", set_limits={"producer_byte_rate": RATE})
    async with _greedy(greedy) as counts:
        figures += _figures("beside one with a quota", await _times(client), alone)
    return figures + _rate("greedy client with a quota", counts)


async def _times(client: SemelClient) -> list[float]:
    """Send for a while; return how long each record took, in milliseconds."""
    async with client.producer() as producer:
        for _ in range(WARM_UP):
            await producer.send_and_wait("polite", VALUE)
        times = []
        end = time.perf_counter() + SECONDS
        while (started := time.perf_counter()) < end:
            await producer.send_and_wait("polite", VALUE)
            times.append((time.perf_counter() - started) * 1_000)
    return times


def _figures(name: str, times: list[float], alone: list[float] | None = None) -> list[Figure]:
    figures = []
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        value = percentile(times, share)
        figures.append(Figure(name=f"{name}, {label}", value=value, unit="ms"))
        if alone is not None:
            ratio = value / percentile(alone, share)
            figures.append(Figure(name=f"{name}, {label} to alone", value=ratio, unit="times"))
    return figures


def _rate(name: str, counts: dict[str, float]) -> list[Figure]:
    assert not counts["failed"], f"{name} failed {counts['failed']} times"
    megabytes = counts["taken"] * (64 << 10) / counts["seconds"] / 1e6
    return [Figure(name=name, value=megabytes, unit="MB/s")]


@asynccontextmanager
async def _greedy(arguments: Sequence[str]) -> AsyncIterator[dict[str, float]]:
    """Run the greedy client, which is at it by then; what it got through is there in the end."""
    counts: dict[str, float] = {}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.quotas_greedy", "greedy", *arguments, stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield counts
    finally:
        out, _ = await process.communicate(b"")
    counts.update(json.loads(out))
