"""Small transactions of one producer, or of many in one process."""

import asyncio
import time

from aiosemel import ProducerOptions, SemelClient, TransactionalProducer
from bench.clients.messages import Order
from bench.clients.meter import Meter
from bench.clients.settings import SEMEL_PRODUCER
from bench.workloads import Workload


async def transactions(client: SemelClient, order: Order, meter: Meter) -> None:
    """Let all producers run transactions at the same time until the time is over."""
    task = order.task
    made = await initialised(client, task.name, task.workload.producers)

    async def run(producer: TransactionalProducer) -> None:
        while not meter.over:
            took_ms = await transaction(producer, task.name, task.workload)
            meter.ended(task.workload.records_per_transaction, took_ms)

    async with asyncio.TaskGroup() as group:
        for producer in made:
            group.create_task(run(producer))


async def transaction(producer: TransactionalProducer, topic: str, workload: Workload) -> float:
    """Run one transaction; returns how long its commit took, in milliseconds."""
    value = bytes(workload.record_size_bytes)
    await producer.begin_transaction()
    for number in range(workload.records_per_transaction):
        await producer.send(topic, value, partition=number % workload.partitions)
    started = time.perf_counter()
    await producer.commit()
    return (time.perf_counter() - started) * 1_000


async def initialised(
    client: SemelClient, name: str, count: int, options: ProducerOptions = SEMEL_PRODUCER
) -> list[TransactionalProducer]:
    """Return so many producers, ready for their first transaction."""
    made = [client.transactional_producer(f"{name}-{number}", options) for number in range(count)]
    await asyncio.gather(*(producer.init_transactions() for producer in made))
    return made
