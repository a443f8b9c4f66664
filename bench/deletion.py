"""Deleting much while others write: what it costs their produces, and when the space is there."""

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from aiosemel import SemelClient
from bench.measure import Figure, percentile
from bench.topics import fresh_topic
from semel_local import ProcessCluster

VALUE = bytes(100)
COLUMN = [bytes(range(256)) * 4] * 256
"""A quarter of a megabyte."""
PRODUCE_INTERVAL_S = 0.01
WINDOW_S = 10.0
"""A disk that others use stands still now and then: so what counts is the middle of such windows,
of a thousand produces each. What is longest of all is told as well."""
WINDOWS = 6
"""Before the deletion, and again after it."""
DELETION_MAX_S = 900.0


async def deletion(megabytes: int = 10_000) -> list[Figure]:
    """Fill a topic, delete it all, and time the produces to another one meanwhile, and without.

    A produce is one record of 100 bytes, sent and acknowledged; one begins every 10 ms, or when the
    last one has ended. The deletion is over once the broker's file has given its space back; raises
    TimeoutError if that takes longer than DELETION_MAX_S.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with (
            ProcessCluster(Path(folder)) as cluster,
            SemelClient(cluster.bootstrap) as client,
        ):
            full = await fresh_topic(client, 1)
            other = await fresh_topic(client, 1)
            await _fill(client, full, megabytes)
            without = [await _window(client, other) for _ in range(WINDOWS)]
            meanwhile, seconds = await _delete_meanwhile(client, full, other, Path(folder))
            without += [await _window(client, other) for _ in range(WINDOWS)]
    p99_without, p99_meanwhile = _p99(without), _p99(meanwhile)
    return [
        Figure(name="produce p99 without", value=p99_without, unit="ms"),
        Figure(name="produce p99 meanwhile", value=p99_meanwhile, unit="ms"),
        Figure(name="times as much", value=p99_meanwhile / p99_without, unit="", goal="≤ 2"),
        Figure(name="longest without", value=max(map(max, without)), unit="ms"),
        Figure(name="longest meanwhile", value=max(map(max, meanwhile)), unit="ms"),
        Figure(name=f"{megabytes} MB given back", value=seconds, unit="s"),
    ]


def _p99(windows: list[list[float]]) -> float:
    return median(percentile(window, 0.99) for window in windows)


async def _fill(client: SemelClient, topic: str, megabytes: int) -> None:
    async with client.producer() as producer:
        for _ in range(megabytes * 4):
            await producer.send_columns(topic, COLUMN, partition=0)
        await producer.flush()


async def _delete_meanwhile(
    client: SemelClient, full: str, other: str, folder: Path
) -> tuple[list[list[float]], float]:
    """Delete, and produce until the file is small; return latencies, and how long it took."""
    size_bytes = _largest_journal_bytes(folder)
    started = time.perf_counter()
    await client.admin().delete_records({(full, 0): None})
    windows: list[list[float]] = []
    while _largest_journal_bytes(folder) > size_bytes / 5:
        windows.append(await _window(client, other))
        if time.perf_counter() - started > DELETION_MAX_S:
            left = _largest_journal_bytes(folder) / size_bytes
            raise TimeoutError(f"{left:.0%} of the file are there after {DELETION_MAX_S:.0f} s")
    return windows, time.perf_counter() - started


def _largest_journal_bytes(folder: Path) -> int:
    return max(file.stat().st_size for file in folder.rglob("journal.db"))


async def _window(client: SemelClient, topic: str) -> list[float]:
    """Send record after record; return how long each took, in milliseconds."""
    latencies = []
    async with client.producer() as producer:
        await (await producer.send(topic, VALUE))
        until = time.perf_counter() + WINDOW_S
        while (began := time.perf_counter()) < until:
            await (await producer.send(topic, VALUE))
            took = time.perf_counter() - began
            latencies.append(took * 1_000)
            await asyncio.sleep(max(0.0, PRODUCE_INTERVAL_S - took))
    return latencies
