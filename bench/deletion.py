"""Deleting much while others write: what it costs their produces, and when the space is there."""

import asyncio
import tempfile
import time
from pathlib import Path

from aiosemel import SemelClient
from bench.measure import Figure, percentile
from bench.topics import fresh_topic
from semel_local import ProcessCluster

VALUE = bytes(100)
COLUMN = [bytes(range(256)) * 4] * 256
"""A quarter of a megabyte."""
PRODUCE_INTERVAL_S = 0.01
BASELINE_S = 60.0
DELETION_MAX_S = 900.0


async def deletion(megabytes: int = 10_000) -> list[Figure]:
    """Fill a topic, delete it all, and time the produces to another one before and meanwhile.

    A produce is one record of 100 bytes, sent and acknowledged; one begins every 10 ms, or when the
    last one has ended. The deletion is over once the broker's file has given its space back.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with (
            ProcessCluster(Path(folder)) as cluster,
            SemelClient(cluster.bootstrap) as client,
        ):
            full = await fresh_topic(client, 1)
            other = await fresh_topic(client, 1)
            await _fill(client, full, megabytes)
            before = await _produces(client, other, time.perf_counter() + BASELINE_S)
            meanwhile, seconds = await _delete_meanwhile(client, full, other, Path(folder))
    return [
        Figure(name="produce p50 before", value=percentile(before, 0.5), unit="ms"),
        Figure(name="produce p99 before", value=percentile(before, 0.99), unit="ms"),
        Figure(name="produce p50 meanwhile", value=percentile(meanwhile, 0.5), unit="ms"),
        Figure(
            name="produce p99 meanwhile",
            value=percentile(meanwhile, 0.99),
            unit="ms",
            goal="≤ 2 x before",
        ),
        Figure(name="longest produce meanwhile", value=max(meanwhile), unit="ms"),
        Figure(name=f"{megabytes} MB given back", value=seconds, unit="s"),
    ]


async def _fill(client: SemelClient, topic: str, megabytes: int) -> None:
    async with client.producer() as producer:
        for _ in range(megabytes * 4):
            await producer.send_columns(topic, COLUMN, partition=0)
        await producer.flush()


async def _delete_meanwhile(
    client: SemelClient, full: str, other: str, folder: Path
) -> tuple[list[float], float]:
    """Delete, and produce until the file is small; return latencies, and how long it took."""
    size_bytes = _largest_journal_bytes(folder)
    started = time.perf_counter()
    await client.admin().delete_records({(full, 0): None})
    latencies: list[float] = []
    while _largest_journal_bytes(folder) > size_bytes / 5:
        latencies += await _produces(client, other, time.perf_counter() + 1.0)
        if time.perf_counter() - started > DELETION_MAX_S:
            break
    return latencies, time.perf_counter() - started


def _largest_journal_bytes(folder: Path) -> int:
    return max(file.stat().st_size for file in folder.rglob("journal.db"))


async def _produces(client: SemelClient, topic: str, until: float) -> list[float]:
    """Send record after record; return how long each took, in milliseconds."""
    latencies = []
    async with client.producer() as producer:
        await (await producer.send(topic, VALUE))
        while (began := time.perf_counter()) < until:
            await (await producer.send(topic, VALUE))
            took = time.perf_counter() - began
            latencies.append(took * 1_000)
            await asyncio.sleep(max(0.0, PRODUCE_INTERVAL_S - took))
    return latencies
