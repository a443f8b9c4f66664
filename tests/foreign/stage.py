"""One example on a cluster: orders go in, commits have trouble, and the result must be exact."""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aiosemel import ConsumerOptions, IsolationLevel, SemelClient, TopicPartition
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
ORDERS = 17
"""An example reads two at once at most: nine transactions, one for each trouble."""
MANY_ORDERS = 400
"""More than an example takes before a signal reaches it."""
FENCED_STATUS = 3
MISSING_STATUS = 1
_RUN_TIMEOUT_S = 90.0
_PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")
_DEAD_PROXY = "http://127.0.0.1:1"
_ENDED_TIMEOUT_S = 5.0
"""Less than brokers wait before they ask what became of a transaction."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a program has ended."""

    status: int
    written: str


class Stage:
    """A cluster of processes, with coordinators that make trouble."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self._cluster = cluster

    async def play(self, command: Sequence[str], name: str) -> list[str]:
        """Run an example without its output topic, until it is fenced, and once more.

        Returns the faults of the example.
        """
        topics = [f"{name}-{kind}" for kind in ("orders", "invoices", "audit")]
        async with SemelClient(self._cluster.bootstrap) as client:
            leaders = await self._prepare(client, topics)
            expected = await _produce_orders(client, topics[0])
            missing = await _run(command, (self._cluster.bootstrap, topics[0], f"{name}-missing"))
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
            if missing.status != MISSING_STATUS or "TOPIC_NOT_FOUND" not in missing.written:
                wrong.append(f"the run without an output topic: {missing}")
            if script.done != list(SCRIPT):
                wrong.append(f"only {len(script.done)} of {len(SCRIPT)} troubles: {first.written}")
            if script.aborted != script.refused:
                wrong.append(f"an abort names {script.aborted}, not {script.refused}")
            for topic in topics[1:]:
                found = await _read(client, topic, len(expected))
                if found != expected:
                    wrong.append(f"{topic} has {_sketch(found)}, not {_sketch(expected)}")
            committed = await _committed(client, topics[0])
            if committed != len(expected):
                wrong.append(f"the group is at {committed}, not {len(expected)}")
            return wrong

    async def interrupt(self, command: Sequence[str], name: str, status: int) -> list[str]:
        """Stop an example in the middle by SIGTERM, and run it again; returns its faults."""
        topics = [f"{name}-stopped-{kind}" for kind in ("orders", "invoices", "audit")]
        async with SemelClient(self._cluster.bootstrap) as client:
            for topic in topics:
                await client.admin().create_topic(topic, partitions=1)
            expected = await _produce_orders(client, topics[0], MANY_ORDERS)
            process = await _started(command, (self._cluster.bootstrap, *topics))
            await _read(client, topics[1], 1)
            process.send_signal(signal.SIGTERM)
            first = await _ended(process)
            is_open = [topic for topic in topics[1:] if not await _is_ended(client, topic)]
            taken = await _committed(client, topics[0])
            second = await _run(command, (self._cluster.bootstrap, *topics))
            wrong = [
                f"{what} ends with {run.status}: {run.written}"
                for what, run, right in (("SIGTERM", first, status), ("the end", second, 0))
                if run.status != right
            ]
            if is_open:
                wrong.append(f"SIGTERM leaves a transaction open in {is_open}")
            if taken >= len(expected):
                wrong.append("SIGTERM came when everything was done already")
            for topic in topics[1:]:
                found = await _read(client, topic, len(expected))
                if found != expected:
                    wrong.append(f"{topic} has {_sketch(found)}, not {_sketch(expected)}")
            return wrong

    async def _prepare(self, client: SemelClient, topics: Sequence[str]) -> dict[str, int]:
        """Create the topics; returns their leaders, at least two different ones."""
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
            for coordinator in coordinators:
                coordinator.moved = moved
                await coordinator.start()
                stack.push_async_callback(coordinator.stop)
            yield f"127.0.0.1:{coordinators[0].port}"
        await self._cluster.wait_ready(broker)


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    """Start a cluster in which it matters whom a client asks."""
    async with ProcessCluster(folder, brokers=3, coordinators=2, group_coordinators=2) as cluster:
        yield Stage(cluster)


async def _produce_orders(client: SemelClient, topic: str, count: int = ORDERS) -> list[str]:
    orders = [f"order {number}" for number in range(count)]
    async with client.producer() as producer:
        for order in orders:
            delivery = await producer.send(topic, order.encode(), partition=0)
            await delivery
    return orders


async def _is_ended(client: SemelClient, topic: str) -> bool:
    """Return whether readers soon see all that is stored, because no transaction is open."""
    place = TopicPartition(topic, 0)
    ends: set[int] = set()
    with suppress(TimeoutError):
        async with asyncio.timeout(_ENDED_TIMEOUT_S):
            while len(ends) != 1:
                ends = set()
                for level in IsolationLevel:
                    options = ConsumerOptions(isolation_level=level)
                    async with client.consumer(options=options) as consumer:
                        ends.add((await consumer.end_offsets([place]))[place])
    return len(ends) == 1


async def _committed(client: SemelClient, topic: str) -> int:
    """Return how many orders the group of an example has taken."""
    source = TopicPartition(topic, 0)
    offsets = await client.admin().list_consumer_group_offsets(f"invoicers-of-{topic}", [source])
    committed = offsets[source]
    return 0 if committed is None else committed.offset


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
    return await _ended(await _started(command, arguments))


async def _started(command: Sequence[str], arguments: Sequence[str]) -> Process:
    """Start an example behind a proxy that is dead: calls to the loopback must not go by it."""
    rest = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"}
    proxies = dict.fromkeys((*_PROXIES, *map(str.upper, _PROXIES)), _DEAD_PROXY)
    return await asyncio.create_subprocess_exec(
        *command, *arguments, stdout=PIPE, stderr=STDOUT, env=rest | proxies
    )


async def _ended(process: Process) -> Run:
    try:
        async with asyncio.timeout(_RUN_TIMEOUT_S):
            written, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        written, _ = await process.communicate()
    assert process.returncode is not None
    return Run(process.returncode, written.decode(errors="replace"))
