"""Aborted transactions that lie behind a reader, in its partition."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from aiosemel import SemelClient, TopicPartition
from bench.growth.curve import Curve, Point, Reading
from bench.growth.operations import Operations
from bench.growth.stage import Stage, stage
from bench.topics import fresh_topic

PRODUCERS = 500
"""So many abort at the same time; each has one epoch after the other."""
COLUMN = [bytes(100)] * 5_000
RECORDS = 200_000


async def aborted(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Abort, write plain records behind that, and read these; then all from the beginning."""
    async with stage(folder) as here:
        topic = await fresh_topic(here.client, 1)
        topic_id = (await here.client.admin().describe_topic(topic)).topic_id
        operations = await Operations.on(here, topic)
        producer_ids = await here.wire.producer_ids(PRODUCERS)
        there = epoch = 0
        for size in sizes:
            while there < size:
                some = producer_ids[: min(PRODUCERS, int(size) - there)]
                await here.wire.open(topic, some, epoch)
                await here.wire.abort(topic_id, some, epoch)
                there, epoch = there + len(some), epoch + 1
            readings = [
                *await operations.readings(),
                *await _read_behind(here, topic),
                *await here.probe.restart("broker-0"),
            ]
            yield Point(size=size, readings=tuple(readings))


async def _read_behind(here: Stage, topic: str) -> list[Reading]:
    end = await _end(here.client, topic)
    async with here.client.producer() as producer:
        for _ in range(RECORDS // len(COLUMN)):
            await producer.send_columns(topic, COLUMN, partition=0)
        await producer.flush()
    millions = RECORDS / 1e6

    async def behind() -> None:
        await _poll(here.client, topic, end)

    async def one_behind() -> None:
        async with here.client.consumer() as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), end)
            await consumer.poll_columns(timeout_ms=10_000, max_records=1)

    return [
        *await here.probe.once("poll a million records", behind, parts=millions),
        *await here.probe.cost("first poll of a new consumer", one_behind, 20),
    ]


async def _end(client: SemelClient, topic: str) -> int:
    async with client.consumer() as consumer:
        (end,) = (await consumer.end_offsets([(topic, 0)])).values()
        return end


async def _poll(client: SemelClient, topic: str, offset: int) -> None:
    """Read all records from an offset on."""
    async with client.consumer() as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), offset)
        seen = 0
        while seen < RECORDS:
            polled = await consumer.poll_columns(timeout_ms=10_000)
            seen += sum(len(batch) for batches in polled.values() for batch in batches)


ABORTED = Curve(
    name="aborted",
    axis="aborted transactions in the partition",
    sizes=(0, 100, 1_000, 10_000, 100_000),
    measure=aborted,
    why="Flat: a reader finds its place by bisection. The index of aborted transactions costs "
    "memory, and a start reads it.",
)
