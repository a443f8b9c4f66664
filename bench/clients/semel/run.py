"""Every kind of workload, on a client that is open."""

import math
from typing import assert_never

from aiosemel import SemelClient
from bench.clients.messages import Order
from bench.clients.meter import Meter
from bench.clients.semel.bulk import bulk, consume
from bench.clients.semel.transactions import transactions
from bench.clients.semel.transform import transform_columns, transform_records
from bench.clients.semel.visible import visible
from bench.clients.settings import ClientName, settings_of
from bench.topics import fresh_name
from bench.workloads import Call, Kind, Sample, Task, Workload


async def run_workload(client: SemelClient, order: Order, meter: Meter) -> None:
    """Create the topic that is written to, and do what the order says."""
    task = order.task
    if task.workload.kind is not Kind.CONSUME:
        await client.admin().create_topic(
            task.name, partitions=task.workload.partitions, exist_ok=True
        )
    match task.workload.kind:
        case Kind.TRANSACTIONS:
            await transactions(client, order, meter)
        case Kind.VISIBLE:
            await visible(client, order, meter)
        case Kind.TRANSFORM if task.workload.call is Call.COLUMNS:
            await transform_columns(client, order, meter)
        case Kind.TRANSFORM:
            await transform_records(client, order, meter)
        case Kind.BULK:
            await bulk(client, order, meter)
        case Kind.CONSUME:
            await consume(client, order, meter)
        case unknown:
            assert_never(unknown)


async def measure(
    client: SemelClient,
    workload: Workload,
    *,
    source: str = "",
    records_max: int = 1 << 53,
    warm_up_s: float = 1.0,
    duration_s: float = 3.0,
) -> Sample:
    """Run a workload once, here, under a name of its own."""
    task = Task(
        workload=workload,
        name=fresh_name(),
        source=source,
        records_max=records_max,
        warm_up_s=warm_up_s,
        duration_s=duration_s,
    )
    return (await _run_task(client, task)).sample()


async def fill(client: SemelClient, workload: Workload, records: int) -> str:
    """Write a topic with so many records; returns its name."""
    task = Task(
        workload=workload,
        name=fresh_name(),
        records_max=records,
        warm_up_s=0.0,
        duration_s=math.inf,
    )
    await _run_task(client, task)
    return task.name


async def _run_task(client: SemelClient, task: Task) -> Meter:
    meter = Meter(task, lambda: None)
    order = Order(task=task, settings=settings_of(ClientName.SEMEL, task.workload))
    await run_workload(client, order, meter)
    return meter
