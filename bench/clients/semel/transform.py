"""Consume, transform, produce, exactly once: by `transform`, or in columns by hand."""

from collections.abc import Sequence

from aiosemel import (
    ConsumerRecord,
    Outputs,
    SemelClient,
    TransactionCommitted,
    TransformEvent,
    TransformOptions,
)
from bench.clients.messages import Order
from bench.clients.meter import Meter
from bench.clients.semel.transactions import initialised
from bench.clients.settings import SEMEL_CONSUMER

_POLL_TIMEOUT_MS = 10_000


async def transform_records(client: SemelClient, order: Order, meter: Meter) -> None:
    """Copy records with `SemelClient.transform` until the time is over."""
    task = order.task

    async def copy(batch: Sequence[ConsumerRecord], outputs: Outputs) -> None:
        for record in batch:
            await outputs.send(task.name, record.value, partition=record.partition)

    async def count(event: TransformEvent) -> None:
        assert isinstance(event, TransactionCommitted), event
        meter.ended(event.records_in)
        if meter.over:
            transform.stop()

    transform = client.transform(
        source=[task.source],
        group=task.name,
        transactional_id=task.name,
        handler=copy,
        on_event=count,
        options=TransformOptions(max_records=task.workload.records_per_transaction),
        consumer_options=SEMEL_CONSUMER,
    )
    await transform.run()


async def transform_columns(client: SemelClient, order: Order, meter: Meter) -> None:
    """Copy columns, as a program that needs no single records would."""
    task = order.task
    (producer,) = await initialised(client, task.name, 1)
    async with client.consumer(task.name, SEMEL_CONSUMER) as consumer:
        consumer.subscribe([task.source])
        while not meter.over:
            polled = await consumer.poll_columns(
                task.workload.records_per_transaction, timeout_ms=_POLL_TIMEOUT_MS
            )
            if not polled:
                continue
            await producer.begin_transaction()
            for (_, partition), batches in polled.items():
                for batch in batches:
                    await producer.send_columns(task.name, batch.values, partition=partition)
            ends = {held: batches[-1].offsets[-1] + 1 for held, batches in polled.items()}
            await producer.send_offsets(ends, consumer.group_metadata())
            await producer.commit()
            meter.ended(sum(len(batch) for batches in polled.values() for batch in batches))
