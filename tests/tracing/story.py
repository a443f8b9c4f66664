"""The traced transactions: one without a fault, and one with a coordinator killed in between.

Participants are held still while the second one commits. So the coordinator decides, and is killed
before any of them has its marker; the one that is started in its place sends them.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP

from opentelemetry.trace import Span, Tracer, format_trace_id

from aiosemel import (
    ConsumerOptions,
    IsolationLevel,
    OffsetReset,
    SemelClient,
    TransactionalProducer,
)
from semel_common.telemetry.span_export import Telemetry
from semel_local import ProcessCluster

APPLICATION = "trace-demo"
TOPIC = "orders"
GROUP = "payers"
PARTITIONS = 2
PARTICIPANTS = ("broker-0", "broker-1", "group-coordinator-0")
READ_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The ids of the traces that were made."""

    whole: str
    interrupted: str
    reading: str


async def tell(folder: Path, telemetry: Telemetry) -> Story:
    """Let it happen in real processes, which export to wherever the environment says."""
    tracer = telemetry.tracer(APPLICATION)
    async with (
        ProcessCluster(folder, brokers=2) as cluster,
        SemelClient(cluster.bootstrap, tracer_provider=telemetry.provider) as client,
    ):
        await client.admin().create_topic(TOPIC, partitions=PARTITIONS)
        producer = client.transactional_producer("payer-0")
        await producer.init_transactions()
        # First, because a killed process loses the spans that it has not exported yet.
        with tracer.start_as_current_span("order 1") as interrupted:
            await _fill(client, producer)
            await _commit_and_kill(cluster, producer)
        with tracer.start_as_current_span("order 2") as whole:
            await _fill(client, producer)
            await producer.commit(wait_until_visible=True)
        reading = await _read(client, tracer, records=2 * PARTITIONS)
    return Story(whole=_id(whole), interrupted=_id(interrupted), reading=_id(reading))


async def _fill(client: SemelClient, producer: TransactionalProducer) -> None:
    """Begin a transaction that has all kinds of participants, and has heard of all of them."""
    await producer.begin_transaction()
    deliveries = [
        await producer.send(TOPIC, b"pizza", partition=partition) for partition in range(PARTITIONS)
    ]
    for delivery in deliveries:
        await delivery
    consumer = client.consumer(GROUP)
    await producer.send_offsets({(TOPIC, 0): 1}, consumer.group_metadata())
    await consumer.close()


async def _commit_and_kill(cluster: ProcessCluster, producer: TransactionalProducer) -> None:
    """Kill the coordinator between its decision and the first marker."""
    for name in PARTICIPANTS:
        cluster.signal(name, SIGSTOP)
    try:
        await producer.commit()
        await cluster.kill("coordinator-0")
        await cluster.start("coordinator-0", wait=False)
    finally:
        for name in PARTICIPANTS:
            cluster.signal(name, SIGCONT)
    await cluster.wait_ready()


async def _read(client: SemelClient, tracer: Tracer, *, records: int) -> Span:
    options = ConsumerOptions(
        isolation_level=IsolationLevel.READ_COMMITTED, auto_offset_reset=OffsetReset.EARLIEST
    )
    consumer = client.consumer(options=options)
    consumer.assign([(TOPIC, partition) for partition in range(PARTITIONS)])
    count = 0
    with tracer.start_as_current_span("read") as span:
        async with asyncio.timeout(READ_TIMEOUT_S):
            while count < records:
                count += sum(map(len, (await consumer.poll()).values()))
    return span


def _id(span: Span) -> str:
    return format_trace_id(span.get_span_context().trace_id)
