"""More brokers: the throughput of a cluster with 1, 2 and 4, and the time and effect of a move.

All processes share the machine's cores. So the rate says what the same work costs when it is spread
over more brokers, and what each process computed for it says how much of it is shared out.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from aiosemel import SemelClient, TopicPartition
from bench.clients.semel.run import measure
from bench.measure import Figure
from bench.processes import processor_s
from bench.topics import fresh_topic
from bench.turns import PRODUCERS, UNIT, producing
from bench.workloads import BULK_COLUMNS
from semel_local import ProcessCluster

BROKERS = (1, 2, 4)
TURNS = 4
MOVES = 10
_VALUE = b"v" * 1_000
_MOVED_VALUES = 64_000
_BYTES_PER_MB = 1_000_000


async def brokers() -> list[Figure]:
    """Run small transactions and bulk on clusters of each size, one after the other."""
    figures: list[Figure] = []
    for count in BROKERS:
        with tempfile.TemporaryDirectory() as folder:
            async with (
                ProcessCluster(Path(folder), brokers=count) as cluster,
                SemelClient(cluster.bootstrap) as client,
            ):
                found = [*await _transactions(cluster, client), await _bulk(client)]
        title = f"{count} broker{'s' if count > 1 else ''}"
        figures += [
            Figure(name=f"{title}: {each.name}", value=each.value, unit=each.unit) for each in found
        ]
    return figures


async def _transactions(cluster: ProcessCluster, client: SemelClient) -> list[Figure]:
    async with producing("transactions", client, list(cluster.pids().values())) as contender:
        before, began = _computed(cluster), time.perf_counter()
        for _ in range(TURNS):
            await contender.turn()
        seconds, after = time.perf_counter() - began, _computed(cluster)
    count = TURNS * contender.transactions
    used_ms = {name: 1_000 * (after[name] - before[name]) / count for name in after}
    by_role = {
        role: sum(value for name, value in used_ms.items() if name.startswith(role))
        for role in ("coordinator", "broker")
    }
    return [
        Figure(name=f"{PRODUCERS} producers", value=count / seconds, unit="transactions/s"),
        Figure(name="coordinator's processor time", value=by_role["coordinator"], unit=UNIT),
        Figure(name="all brokers' processor time", value=by_role["broker"], unit=UNIT),
    ]


async def _bulk(client: SemelClient) -> Figure:
    sample = await measure(client, BULK_COLUMNS)
    rate = sample.records * BULK_COLUMNS.record_size_bytes / sample.elapsed_s / _BYTES_PER_MB
    return Figure(name="columns of 100 B in transactions", value=rate, unit="MB/s")


async def moves() -> list[Figure]:
    """Move a partition to and fro, while a producer sends record after record to it.

    Its longest wait for an acknowledgement, while a move goes on, is what the move disturbs.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with (
            ProcessCluster(Path(folder), brokers=2) as cluster,
            SemelClient(cluster.bootstrap) as client,
        ):
            topic = await fresh_topic(client, 1)
            await _fill(client, topic)
            await _move(client, TopicPartition(topic, 0), 1)
            async with _waits(client, topic) as waits:
                times_s, longest_ms = [], []
                for number in range(MOVES):
                    waits[:] = [0.0]
                    began = time.perf_counter()
                    await _move(client, TopicPartition(topic, 0), number % 2)
                    times_s.append(time.perf_counter() - began)
                    longest_ms.append(1_000 * max(waits))
    size_mb = _MOVED_VALUES * len(_VALUE) / _BYTES_PER_MB
    return [
        Figure(name=f"move of {size_mb:.0f} MB", value=median(times_s), unit="s"),
        Figure(name="longest wait of a producer", value=median(longest_ms), unit="ms"),
        Figure(name=f"the worst of {MOVES}", value=max(longest_ms), unit="ms"),
    ]


async def _fill(client: SemelClient, topic: str) -> None:
    async with client.producer() as producer:
        for _ in range(_MOVED_VALUES // 1_000):
            await producer.send_columns(topic, [_VALUE] * 1_000, partition=0)


async def _move(client: SemelClient, partition: TopicPartition, broker_id: int) -> None:
    admin = client.admin().moves
    await admin.alter_partition_reassignments({partition: broker_id})
    await admin.wait_for_reassignments([partition])


@asynccontextmanager
async def _waits(client: SemelClient, topic: str) -> AsyncIterator[list[float]]:
    """Send one record after the other; gives how long each was waited for, in seconds."""
    waits: list[float] = [0.0]

    async def send() -> None:
        async with client.producer() as producer:
            while True:
                began = time.perf_counter()
                await producer.send_and_wait(topic, b"value", partition=0)
                waits.append(time.perf_counter() - began)

    async with asyncio.TaskGroup() as group:
        sending = group.create_task(send(), name="sender")
        yield waits
        sending.cancel()


def _computed(cluster: ProcessCluster) -> dict[str, float]:
    """Return what each service has computed so far, in seconds."""
    return {name: processor_s(pid) for name, pid in cluster.pids().items()}
