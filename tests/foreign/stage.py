"""One example on a cluster: orders go in, commits have trouble, and the result must be exact."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aiosemel import SemelClient, TopicPartition
from foreign.trouble import Scripted, Trouble, TroubledCoordinator
from semel_local import ProcessCluster

SCRIPT = (
    Trouble.NONE,
    Trouble.LOST_REQUEST,
    Trouble.LOST_ANSWER,
    Trouble.LATE_ANSWER,
    Trouble.ABORTED,
    Trouble.REFUSED,
    Trouble.BROKER_KILLED,
    Trouble.NONE,
    Trouble.FENCED,
)
ORDERS = 13
FENCED_STATUS = 3
_RUN_TIMEOUT_S = 90.0
_ORDER_BYTES = 3_000
"""Two are more than an example reads at once: each transaction has one or two orders."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a program has ended."""

    status: int
    written: str


class Stage:
    """A cluster of processes whose coordinators make trouble."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self._cluster = cluster

    async def play(self, command: Sequence[str], name: str) -> list[str]:
        """Run an example until it is fenced, and once more; returns what was wrong."""
        topics = [f"{name}-{kind}" for kind in ("orders", "invoices", "audit")]
        async with SemelClient(self._cluster.bootstrap) as client:
            leaders = await self._prepare(client, topics)
            expected = await _produce_orders(client, topics[0])
            script = Scripted(SCRIPT)
            async with self._troubled(script, leaders[topics[1]]) as bootstrap:
                arguments = (bootstrap, *topics)
                first = await _run(command, arguments)
                second = await _run(command, arguments)
            wrong = [
                f"{what}: {run.written}"
                for what, run, status in (
                    ("the fenced run", first, FENCED_STATUS),
                    ("the run after it", second, 0),
                )
                if run.status != status
            ]
            if script.done != list(SCRIPT):
                wrong.append(f"only {len(script.done)} of {len(SCRIPT)} troubles: {first.written}")
            if script.aborted != script.refused:
                wrong.append(f"an abort names {script.aborted}, not {script.refused}")
            for topic in topics[1:]:
                found = await _read(client, topic, len(expected))
                if found != expected:
                    wrong.append(f"{topic} has {_sketch(found)}, not {_sketch(expected)}")
            source = (topics[0], 0)
            groups = client.admin()
            offsets = await groups.list_consumer_group_offsets(
                f"invoicers-of-{topics[0]}", [source]
            )
            committed = offsets[TopicPartition(*source)]
            if committed is None or committed.offset != len(expected):
                wrong.append(f"the group is at {committed}, not {len(expected)}")
            return wrong

    async def _prepare(self, client: SemelClient, topics: Sequence[str]) -> dict[str, int]:
        """Create the topics; returns their leaders, which are not all the same."""
        leaders = {}
        for topic in topics:
            await client.admin().create_topic(topic, partitions=1)
            described = await client.admin().describe_topic(topic)
            leaders[topic] = described.partitions[0].leader_id
        assert len(set(leaders.values())) > 1, f"one broker leads all: {leaders}"
        return leaders

    @asynccontextmanager
    async def _troubled(self, script: Scripted, broker_id: int) -> AsyncIterator[str]:
        """Stand before all coordinators; yields the bootstrap address."""
        broker = f"broker-{broker_id}"

        async def kill_broker() -> None:
            await self._cluster.kill(broker)
            await self._cluster.start(broker, wait=False)

        names = [name for name in self._cluster.names if name.startswith("coordinator")]
        targets = [self._cluster.address(name) for name in names]
        async with AsyncExitStack() as stack:
            coordinators = [TroubledCoordinator(each, script, kill_broker) for each in targets]
            moved = {
                int(target.rpartition(":")[2]): each.port
                for target, each in zip(targets, coordinators, strict=True)
            }
            for each in coordinators:
                each.moved = moved
                await each.start()
                stack.push_async_callback(each.stop)
            yield f"127.0.0.1:{coordinators[0].port}"
        await self._cluster.wait_ready(broker)


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    """Start a cluster in which it matters whom a client asks."""
    async with ProcessCluster(folder, brokers=3, coordinators=2, group_coordinators=2) as cluster:
        yield Stage(cluster)


async def _produce_orders(client: SemelClient, topic: str) -> list[str]:
    orders = [f"order {number} ".ljust(_ORDER_BYTES, ".") for number in range(ORDERS)]
    async with client.producer() as producer:
        for order in orders:
            delivery = await producer.send(topic, order.encode(), partition=0)
            await delivery
    return orders


async def _read(client: SemelClient, topic: str, count: int) -> list[str]:
    """Read that many records, and whatever there is after them."""
    async with client.consumer() as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        values: list[bytes | None] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(20):
                while len(values) < count:
                    polled = await consumer.poll(timeout_ms=1_000)
                    values += [record.value for records in polled.values() for record in records]
        polled = await consumer.poll(timeout_ms=150)
        values += [record.value for records in polled.values() for record in records]
    return [(value or b"").decode() for value in values]


def _sketch(orders: Sequence[str]) -> list[str]:
    return [order.rstrip(". ") for order in orders]


async def _run(command: Sequence[str], arguments: Sequence[str]) -> Run:
    process = await asyncio.create_subprocess_exec(
        *command, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(_RUN_TIMEOUT_S):
            written, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        written, _ = await process.communicate()
    assert process.returncode is not None
    return Run(process.returncode, written.decode(errors="replace"))
