"""Deleting much while others write: what it costs their produces, and when the space is there."""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
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
LOOK_S = 0.05
"""Between two looks at the space."""
SHARES = (0.5, 0.8, 0.98)
"""Of the space that the records have taken: when so much of it is there again."""
_SECTOR_BYTES = 512
"""The unit in which `stat` counts what a file takes."""


async def deletion(megabytes: int = 10_000) -> list[Figure]:
    """Fill a topic, delete it all, and time the produces to another one meanwhile, and without.

    A produce is one record of 100 bytes, sent and acknowledged; one begins every 10 ms, or when the
    last one has ended. The deletion is over once the file system has their space again;
    raises TimeoutError if that takes longer than DELETION_MAX_S.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with (
            ProcessCluster(Path(folder)) as cluster,
            SemelClient(cluster.bootstrap) as client,
        ):
            full = await fresh_topic(client, 1)
            other = await fresh_topic(client, 1)
            empty_bytes = _taken_bytes(Path(folder))
            await _fill(client, full, megabytes)
            without = [await _window(client, other) for _ in range(WINDOWS)]
            space = _Space(Path(folder), empty_bytes)
            meanwhile = await _delete_meanwhile(client, full, other, space)
            without += [await _window(client, other) for _ in range(WINDOWS)]
    p99_without, p99_meanwhile = _p99(without), _p99(meanwhile)
    return [
        Figure(name="produce p99 without", value=p99_without, unit="ms"),
        Figure(name="produce p99 meanwhile", value=p99_meanwhile, unit="ms"),
        Figure(name="times as much", value=p99_meanwhile / p99_without, unit="", goal="≤ 2"),
        Figure(name="longest without", value=max(map(max, without)), unit="ms"),
        Figure(name="longest meanwhile", value=max(map(max, meanwhile)), unit="ms"),
        Figure(name=f"space of {megabytes} MB", value=space.used_bytes / 1e6, unit="MB"),
        *(
            Figure(name=f"{share:.0%} given back", value=after_s, unit="s", goal=goal)
            for share, after_s, goal in zip(SHARES, space.seconds, ("", "", "≤ 10"), strict=True)
        ),
    ]


def _p99(windows: list[list[float]]) -> float:
    return median(percentile(window, 0.99) for window in windows)


async def _fill(client: SemelClient, topic: str, megabytes: int) -> None:
    async with client.producer() as producer:
        for _ in range(megabytes * 4):
            await producer.send_columns(topic, COLUMN, partition=0)
        await producer.flush()


class _Space:
    """The space of the records: how much of it the file system has again."""

    def __init__(self, folder: Path, empty_bytes: int) -> None:
        self._folder = folder
        self._empty_bytes = empty_bytes
        self.used_bytes = _taken_bytes(folder) - empty_bytes
        """What the records take."""
        self.seconds: list[float] = []
        """After how many seconds each share was there again."""
        self._began = 0.0
        self._next_look_s = 0.0

    def begin(self) -> None:
        """Let the time of the deletion begin."""
        self._began = time.perf_counter()

    def is_there(self) -> bool:
        """Look, unless the last look was just now; answer whether the space is there again."""
        took_s = time.perf_counter() - self._began
        if len(self.seconds) == len(SHARES) or took_s < self._next_look_s:
            return len(self.seconds) == len(SHARES)
        self._next_look_s = took_s + LOOK_S
        left = (_taken_bytes(self._folder) - self._empty_bytes) / self.used_bytes
        self.seconds += [took_s for share in SHARES[len(self.seconds) :] if left <= 1 - share]
        if took_s > DELETION_MAX_S:
            raise TimeoutError(f"{left:.0%} of the space is taken after {DELETION_MAX_S:.0f} s")
        return len(self.seconds) == len(SHARES)


async def _delete_meanwhile(
    client: SemelClient, full: str, other: str, space: _Space
) -> list[list[float]]:
    """Delete, and produce until the space is there; return latencies."""
    space.begin()
    await client.admin().delete_records({(full, 0): None})
    windows: list[list[float]] = []
    while not space.is_there():
        windows.append(await _window(client, other, is_over=space.is_there))
    return windows


def _taken_bytes(folder: Path) -> int:
    """Return what the journals take of the file system."""
    return _SECTOR_BYTES * sum(_sectors(folder))


def _sectors(folder: Path) -> Iterator[int]:
    for root, _, names in os.walk(folder):
        for name in names:
            if name.startswith("journal."):
                with suppress(FileNotFoundError):  # Files go meanwhile.
                    yield (Path(root) / name).stat().st_blocks


async def _window(
    client: SemelClient, topic: str, is_over: Callable[[], bool] = lambda: False
) -> list[float]:
    """Send record after record; return how long each took, in milliseconds."""
    latencies: list[float] = []
    async with client.producer() as producer:
        await (await producer.send(topic, VALUE))
        until = time.perf_counter() + WINDOW_S
        while (began := time.perf_counter()) < until and not (latencies and is_over()):
            await (await producer.send(topic, VALUE))
            took = time.perf_counter() - began
            latencies.append(took * 1_000)
            await asyncio.sleep(max(0.0, PRODUCE_INTERVAL_S - took))
    return latencies
