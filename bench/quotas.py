"""Does one greedy client slow the others? A polite one is timed beside it, with and without quota.

The polite client sends one record after the other. The greedy one, a process of its own that does
not wait as it is told, sends 64 KiB at a time to another partition of the same broker.
"""

import asyncio
import json
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aiosemel import SemelClient, SemelError
from bench.measure import Figure, percentile
from semel_local.ports import free_port, port_range

SECONDS = 4.0
WARM_UP = 50
VALUE = bytes(100)
RATE = 1_000_000
"""Bytes per second that the greedy client may send."""
_HOST = "127.0.0.1"
_READY_S = 20.0


async def quotas() -> list[Figure]:
    """Time a polite client alone, beside a greedy one, and beside a greedy one with a quota."""
    async with _cluster() as (polite, greedy_broker), SemelClient(polite) as client:
        admin = client.admin()
        for topic in ("polite", "greedy"):
            await admin.create_topic(topic)
        figures = _figures("alone", await _times(client))
        async with _greedy(greedy_broker) as counts:
            figures += _figures("beside a greedy client", await _times(client))
        figures += _rate("greedy client", counts)
        await admin.access.alter_client_quotas("greedy", set_limits={"producer_byte_rate": RATE})
        async with _greedy(greedy_broker) as counts:
            figures += _figures("beside one with a quota", await _times(client))
        figures += _rate("greedy client with a quota", counts)
    return figures


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


def _figures(name: str, times: list[float]) -> list[Figure]:
    return [
        Figure(name=f"{name}, p50", value=percentile(times, 0.5), unit="ms"),
        Figure(name=f"{name}, p99", value=percentile(times, 0.99), unit="ms"),
    ]


def _rate(name: str, counts: dict[str, int]) -> list[Figure]:
    assert not counts["failed"], f"{name} failed {counts['failed']} times"
    megabytes = counts["taken"] * (64 << 10) / SECONDS / 1e6
    return [Figure(name=name, value=megabytes, unit="MB/s")]


@asynccontextmanager
async def _greedy(broker: str) -> AsyncIterator[dict[str, int]]:
    """Run the greedy client; what it got through is there in the end."""
    counts: dict[str, int] = {}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.quotas_greedy", broker, "greedy", stdin=PIPE, stdout=PIPE
    )
    yield counts
    out, _ = await process.communicate(b"")
    counts.update(json.loads(out))


@asynccontextmanager
async def _cluster() -> AsyncIterator[tuple[str, str]]:
    """Run a coordinator and a broker; yields polite's bootstrap, and greedy's way to the broker."""
    names = ("default", "polite", "greedy")
    ports = _ports(2 * len(names))
    at = {
        role: {name: f"{_HOST}:{ports.pop()}" for name in names}
        for role in ("coordinator", "broker")
    }
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for role in at:
            process = await _start(role, folder / role, at)
            stack.push_async_callback(_end, process)
        await _until_ready(at["coordinator"]["polite"])
        yield at["coordinator"]["polite"], at["broker"]["greedy"]


def _ports(count: int) -> list[int]:
    found = [free_port(port_range())]
    while len(found) < count:
        found.append(free_port(port_range(found[-1])))
    return found


async def _start(role: str, folder: Path, at: dict[str, dict[str, str]]) -> Process:
    listeners = ",".join(f"{name}://{address}" for name, address in at[role].items())
    controller = at["coordinator"]["default"] if role == "broker" else ""
    arguments = {
        "data_dir": str(folder),
        "listeners": listeners,
        "controller": controller,
        "authorizer": "acls",
        "quota_debt_max_ms": "1000",
        "super_users": "User:polite;User:greedy",
        "log_level": "error",
    }
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.quotas_service",
        role,
        *(f"--{name}={value}" for name, value in arguments.items()),
    )


async def _until_ready(bootstrap: str) -> None:
    """Wait until topics can be made."""
    async with SemelClient(bootstrap) as client, asyncio.timeout(_READY_S):
        while True:
            try:
                await client.admin().create_topic("ready", exist_ok=True)
            except SemelError:
                await asyncio.sleep(0.1)
            else:
                return


async def _end(process: Process) -> None:
    process.terminate()
    await process.wait()
