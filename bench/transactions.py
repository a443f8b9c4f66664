"""Small transactions: 4 records of 100 bytes to 4 partitions each."""

import asyncio
import time

from opentelemetry.trace import TracerProvider

from aiosemel import SemelClient, TransactionalProducer
from bench.measure import Figure, percentile
from bench.topics import fresh_topic

PARTITIONS = 4
VALUE = bytes(100)
WARM_UP = 20


async def many_producers(
    bootstrap: str,
    *,
    producers: int = 64,
    each: int = 100,
    tracer_provider: TracerProvider | None = None,
) -> list[Figure]:
    """Let many producers of one process run transactions at the same time."""
    async with SemelClient(bootstrap, tracer_provider=tracer_provider) as client:
        topic = await fresh_topic(client, PARTITIONS)
        made = await initialised(client, producers)
        await asyncio.gather(*(transactions(producer, topic, WARM_UP) for producer in made))
        started = time.perf_counter()
        await asyncio.gather(*(transactions(producer, topic, each) for producer in made))
        rate = producers * each / (time.perf_counter() - started)
    name = f"{producers} producers"
    return [Figure(name=name, value=rate, unit="transactions/s", goal="≥ 2,000")]


async def one_producer(
    bootstrap: str, *, count: int = 1_000, tracer_provider: TracerProvider | None = None
) -> list[Figure]:
    """Let one producer run transactions one after the other, and time each commit.

    The time of a commit includes that its four records are sent and acknowledged.
    """
    async with SemelClient(bootstrap, tracer_provider=tracer_provider) as client:
        topic = await fresh_topic(client, PARTITIONS)
        (producer,) = await initialised(client, 1)
        await transactions(producer, topic, WARM_UP)
        started = time.perf_counter()
        commits = await transactions(producer, topic, count)
        rate = count / (time.perf_counter() - started)
    return [
        Figure(name="1 producer", value=rate, unit="transactions/s"),
        Figure(name="commit p50", value=percentile(commits, 0.5), unit="ms", goal="≤ 1.5"),
        Figure(name="commit p99", value=percentile(commits, 0.99), unit="ms"),
    ]


async def transactions(producer: TransactionalProducer, topic: str, count: int) -> list[float]:
    """Run transactions; returns how long each commit took, in milliseconds."""
    commits = []
    for _ in range(count):
        await producer.begin_transaction()
        for partition in range(PARTITIONS):
            await producer.send(topic, VALUE, partition=partition)
        started = time.perf_counter()
        await producer.commit()
        commits.append((time.perf_counter() - started) * 1_000)
    return commits


async def initialised(client: SemelClient, count: int) -> list[TransactionalProducer]:
    """Make producers that may begin transactions."""
    made = [client.transactional_producer(f"bench-{number}") for number in range(count)]
    await asyncio.gather(*(producer.init_transactions() for producer in made))
    return made
