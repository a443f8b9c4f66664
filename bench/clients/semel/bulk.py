"""Bulk: many records in large transactions, by columns and one by one, and read back."""

from collections.abc import Sequence

from aiosemel import SemelClient, TransactionalProducer
from bench.clients.messages import Order
from bench.clients.meter import Meter
from bench.clients.semel.transactions import initialised
from bench.clients.settings import SEMEL_CONSUMER
from bench.workloads import Call, Task

COLUMN_RECORDS = 5_000
_POLL_TIMEOUT_MS = 10_000


async def bulk(client: SemelClient, order: Order, meter: Meter) -> None:
    """Run large transactions one after the other."""
    task = order.task
    (producer,) = await initialised(client, task.name, 1)
    column = [bytes(task.workload.record_size_bytes)] * COLUMN_RECORDS
    send = _send_columns if task.workload.call is Call.COLUMNS else _send_records
    while not meter.over:
        await producer.begin_transaction()
        await send(producer, task, column)
        await producer.commit()
        meter.ended(task.workload.records_per_transaction)


async def _send_columns(
    producer: TransactionalProducer, task: Task, column: Sequence[bytes]
) -> None:
    for number in range(task.workload.records_per_transaction // len(column)):
        await producer.send_columns(task.name, column, partition=number % task.workload.partitions)


async def _send_records(
    producer: TransactionalProducer, task: Task, column: Sequence[bytes]
) -> None:
    for number in range(task.workload.records_per_transaction):
        await producer.send(task.name, column[0], partition=number % task.workload.partitions)


async def consume(client: SemelClient, order: Order, meter: Meter) -> None:
    """Poll columns of a topic from its beginning until its end, or until the time is over."""
    task = order.task
    async with client.consumer(options=SEMEL_CONSUMER) as consumer:
        consumer.assign((task.source, index) for index in range(task.workload.partitions))
        while not meter.over:
            polled = await consumer.poll_columns(timeout_ms=_POLL_TIMEOUT_MS)
            if polled:
                meter.ended(sum(len(batch) for batches in polled.values() for batch in batches))
