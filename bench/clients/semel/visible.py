"""How long it takes until a consumer has what a producer sends in a transaction."""

import asyncio
import time

from aiosemel import Consumer, SemelClient
from bench.clients.messages import Order
from bench.clients.meter import Meter
from bench.clients.semel.transactions import initialised, transaction
from bench.clients.settings import SEMEL_CONSUMER

_POLL_TIMEOUT_MS = 60_000


async def visible(client: SemelClient, order: Order, meter: Meter) -> None:
    """Send, and wait until another task's poll has returned all of it, again and again."""
    task = order.task
    (producer,) = await initialised(client, task.name, 1)
    arrived: asyncio.Queue[float] = asyncio.Queue()
    async with client.consumer(options=SEMEL_CONSUMER) as consumer:
        consumer.assign((task.name, index) for index in range(task.workload.partitions))
        async with asyncio.TaskGroup() as group:
            polling = group.create_task(_poll(consumer, arrived))
            while not meter.over:
                started = ended = time.perf_counter()
                await transaction(producer, task.name, task.workload)
                for _ in range(task.workload.records_per_transaction):
                    ended = await arrived.get()
                meter.ended(task.workload.records_per_transaction, (ended - started) * 1_000)
            polling.cancel()


async def _poll(consumer: Consumer, arrived: asyncio.Queue[float]) -> None:
    """Say when each record has arrived."""
    while True:
        polled = await consumer.poll(timeout_ms=_POLL_TIMEOUT_MS)
        now = time.perf_counter()
        for records in polled.values():
            for _ in records:
                arrived.put_nowait(now)
