"""The budgets of the console: its start, its memory, and each page on a cluster with much in it."""

import asyncio
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from aiosemel import SemelClient
from bench.growth.stage import Stage, stage
from bench.measure import Figure
from bench.processes import processor_s, resident_mib

TRANSACTIONAL_IDS = 100_000
PARTITIONS = 10_000
GROUPS = 1_000
_PARTITIONS_OF_A_TOPIC = 1_000
_OPEN = 200
"""Transactions that are open while the pages are looked at."""
_LOOKS = 5
_AT_ONCE = 50
_START_MAX_S = 60.0
_KIB = 1_024
PAGES = (
    *("/", "/transactions", "/transactions?state=any", "/transactions?transactional_id=growth-77"),
    *("/transaction?transactional_id=growth-7&epoch=0", "/history", "/prepared", "/topics"),
    *("/topic?name=topic-0", "/partition?topic=topic-0&partition=7"),
    *("/messages?topic=topic-0&partition=0", "/groups", "/group?id=group-7"),
    *("/why?group=group-7&topic=topic-0", "/search?q=growth-99", "/cluster", "/rules", "/audit"),
)


@dataclass(frozen=True, slots=True)
class RunningConsole:
    """A console in a process of its own."""

    pid: int
    url: str
    start_s: float
    """From the start of its process until its first answer."""


async def console() -> list[Figure]:
    """Fill a cluster, start a console, and look at its pages."""
    return await measured(TRANSACTIONAL_IDS, PARTITIONS, GROUPS)


async def measured(transactional_ids: int, partitions: int, groups: int) -> list[Figure]:
    """Measure the pages with so much in the cluster."""
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder)) as here:
            await _fill(here, transactional_ids, partitions, groups)
            async with running_console(here.cluster.bootstrap) as running:
                figures = [
                    Figure(name="console start", value=running.start_s, unit="s", goal="≤ 1")
                ]
                async with httpx.AsyncClient(base_url=running.url, timeout=60) as browser:
                    for path in PAGES:
                        figures += await _look(browser, running.pid, path)
                resident = resident_mib(running.pid)
    return [*figures, Figure(name="console memory", value=resident, unit="MiB", goal="≤ 80")]


async def _look(browser: httpx.AsyncClient, pid: int, path: str) -> list[Figure]:
    """Ask for a page several times; the first look, which learns what is cached, does not count."""
    answer = await browser.get(path)
    answer.raise_for_status()
    took_ms: list[float] = []
    computed_s = processor_s(pid)
    for _ in range(_LOOKS):
        started = time.perf_counter()
        answer = await browser.get(path)
        took_ms.append((time.perf_counter() - started) * 1_000)
    computed_ms = (processor_s(pid) - computed_s) / _LOOKS * 1_000
    return [
        Figure(name=path, value=statistics.median(took_ms), unit="ms", goal="≤ 500"),
        Figure(name="  of it the console", value=computed_ms, unit="ms of processor"),
        Figure(name="  size", value=len(answer.content) / _KIB, unit="KiB", goal="≤ 64"),
    ]


async def _fill(here: Stage, transactional_ids: int, partitions: int, groups: int) -> None:
    """Bring so much into the cluster, by the calls of clients."""
    admin = here.client.admin()
    topics = [min(_PARTITIONS_OF_A_TOPIC, partitions)] * max(
        1, partitions // _PARTITIONS_OF_A_TOPIC
    )
    for number, count in enumerate(topics):
        await admin.create_topic(f"topic-{number}", partitions=count)
    await here.wire.producer_ids(transactional_ids)
    await here.client.producer().send_and_wait("topic-0", b"first", partition=0)
    await _bounded(groups, lambda number: _commit(here.client, f"group-{number}"))
    await _bounded(_OPEN, lambda number: _open(here.client, f"open-{number}", number))


async def _commit(client: SemelClient, group_id: str) -> None:
    await client.admin().groups.alter_offsets(group_id, {("topic-0", 0): 0})


async def _open(client: SemelClient, transactional_id: str, number: int) -> None:
    producer = client.transactional_producer(transactional_id)
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send_and_wait("topic-0", b"open", partition=number % _AT_ONCE)


async def _bounded(count: int, do: Callable[[int], Coroutine[object, object, None]]) -> None:
    for start in range(0, count, _AT_ONCE):
        async with asyncio.TaskGroup() as tasks:
            for number in range(start, min(start + _AT_ONCE, count)):
                tasks.create_task(do(number))


@asynccontextmanager
async def running_console(bootstrap: str) -> AsyncIterator[RunningConsole]:
    """Start a console as the command does, wait for its first answer, and end it."""
    words = ("-m", "semel_cli", "console", "--listen", "127.0.0.1:0", "--bootstrap", bootstrap)
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stderr=asyncio.subprocess.PIPE
    )
    try:
        url = await _address(process)
        transport = httpx.AsyncHTTPTransport(retries=10)
        async with httpx.AsyncClient(transport=transport, timeout=_START_MAX_S) as browser:
            (await browser.get(f"{url}health")).raise_for_status()
        yield RunningConsole(process.pid, url, time.perf_counter() - started)
    finally:
        process.terminate()
        await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(_START_MAX_S):
        while line := (await process.stderr.readline()).decode():
            if found := re.search(r"(http://\S+)", line):
                return found[1]
    raise RuntimeError("the console ended without an address")
