"""Gigabytes of one partition's log."""

import shutil
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

from aiosemel import TopicPartition
from bench.growth.curve import Curve, Point, Reading
from bench.growth.operations import Operations
from bench.growth.stage import Stage, stage
from bench.topics import fresh_topic

COLUMN = [bytes(range(256)) * 4] * 900
"""Not quite a megabyte, which is the most that a request takes."""
BATCH_GB = len(COLUMN) * len(COLUMN[0]) / 1e9
ROOM = 1.5
"""Room that the disk needs beside the log: for the journal's own files, and new records."""


class NoRoomError(Exception):
    """The disk cannot hold a log of the size that was asked for."""


async def log_size(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Fill a partition, and read here and there. Raises NoRoomError before anything is written."""
    _check_room(max(sizes), folder)
    async with stage(folder) as here:
        topic = await fresh_topic(here.client, 1)
        operations = await Operations.on(here, topic)
        written_gb = 0.0
        for size in sizes:
            gigabytes = size - written_gb
            readings = await _fill(here, topic, gigabytes)
            written_gb = size
            readings += [
                *await operations.readings(),
                *await _read(here, topic),
                *await here.probe.restart("broker-0"),
            ]
            yield Point(size=size, readings=tuple(readings))


def _check_room(size_gb: float, folder: Path) -> None:
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < size_gb * ROOM:
        raise NoRoomError(
            f"a log of {size_gb:g} GB needs {size_gb * ROOM:g} GB in {folder}, which has"
            f" {free_gb:.1f} GB: choose less with --log-gb, or another folder with --folder"
        )


async def _fill(here: Stage, topic: str, gigabytes: float) -> list[Reading]:
    async def fill() -> None:
        async with here.client.producer() as producer:
            for _ in range(int(gigabytes / BATCH_GB)):
                await producer.send_columns(topic, COLUMN, partition=0)
            await producer.flush()

    return await here.probe.once("write a megabyte", fill, parts=gigabytes * 1_000)


async def _read(here: Stage, topic: str) -> list[Reading]:
    """Read at random offsets, find offsets by time, and begin at the end."""
    place = TopicPartition(topic, 0)
    random = Random(0)
    async with here.client.consumer() as consumer:
        consumer.assign([place])
        (end,) = (await consumer.end_offsets([place])).values()
        (start,) = (await consumer.beginning_offsets([place])).values()

        async def anywhere() -> None:
            consumer.seek(place, random.randrange(start, end))
            await consumer.poll_columns(timeout_ms=10_000, max_records=1)

        async def by_time() -> None:
            await consumer.offsets_for_times({place: NEVER_MS})

        return [
            *await here.probe.cost("poll at a random offset", anywhere, 50),
            *await here.probe.cost("offset of a time", by_time, 50),
        ]


NEVER_MS = int(timedelta(days=1).total_seconds() * 1_000)
"""Before all records: the first of them is the answer."""

LOG_SIZE = Curve(
    name="log-size",
    axis="gigabytes of the partition",
    sizes=(0.1, 0.3, 1, 2.5, 5),
    measure=log_size,
    why="Flat: offsets and times are found by index, and a start reads no records. With "
    "`LOG_GB=40` it goes on to 40 GB, for which the disk needs 60.",
)
