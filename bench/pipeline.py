"""Consume, transform, produce: one record in each transaction."""

import asyncio
import time
from collections.abc import Sequence

from aiosemel import ConsumerRecord, SemelClient, TransformOptions
from aiosemel.transform_types import Outputs
from bench.measure import Figure
from bench.topics import fresh_topic

PARTITIONS = 4


async def one_record(bootstrap: str, *, records: int = 1_000) -> list[Figure]:
    """Copy records from one topic to another, each in a transaction of its own."""
    async with SemelClient(bootstrap) as client:
        source = await fresh_topic(client, PARTITIONS)
        target = await fresh_topic(client, PARTITIONS)
        producer = client.producer()
        for number in range(records):
            await producer.send(source, bytes(100), partition=number % PARTITIONS)
        await producer.flush()
        copied = 0
        started: float | None = None
        done = asyncio.Event()

        async def copy(batch: Sequence[ConsumerRecord], outputs: Outputs) -> None:
            nonlocal copied, started
            started = started or time.perf_counter()
            for record in batch:
                await outputs.send(target, record.value, partition=record.partition)
            copied += len(batch)
            if copied >= records:
                done.set()

        transform = client.transform(
            source=[source],
            group=f"group-{source}",
            transactional_id=f"copy-{source}",
            handler=copy,
            options=TransformOptions(max_records=1),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(transform.run())
            await done.wait()
            assert started is not None
            rate = records / (time.perf_counter() - started)
            transform.stop()
    return [
        Figure(
            name="consume-transform-produce, 1 record a transaction",
            value=rate,
            unit="transactions/s",
            goal="≥ 300",
        )
    ]
