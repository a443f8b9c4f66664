"""The small examples, as processes on a real cluster: killed, stopped, and exact."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from aiosemel import ConsumerOptions, ConsumerRecord, OffsetReset, SemelClient, TopicPartition
from semel_local import LocalCluster
from semel_runtime.testing.default_signals import default_signals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
EARLIEST = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
BROKEN = [b"no JSON", b"{}", b'{"customer": "bob", "cents": "many"}']


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[LocalCluster]:
    """The topics of the examples have fixed names, so their cluster has no other user."""
    async with LocalCluster(brokers=2, coordinators=1, group_coordinators=1) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="module")
async def client(cluster: LocalCluster) -> AsyncIterator[SemelClient]:
    async with cluster.client() as client:
        yield client


async def start(cluster: LocalCluster, name: str, *arguments: str) -> Process:
    """Start an example; all of its output is in one stream."""
    with default_signals():
        return await asyncio.create_subprocess_exec(
            *(sys.executable, str(EXAMPLES / name), "--bootstrap", cluster.bootstrap),
            *arguments,
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )


async def run(cluster: LocalCluster, name: str, *arguments: str) -> str:
    """Run an example to its end; returns its output."""
    process = await start(cluster, name, *arguments)
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def said(process: Process, line: str) -> None:
    """Wait until an example says a line."""
    assert process.stdout is not None
    while (found := await process.stdout.readline()) != f"{line}\n".encode():
        assert found, f"it ended without {line!r}"


async def end(process: Process, number: signal.Signals) -> tuple[int, str]:
    """Send a signal; returns the status and the rest of the output."""
    process.send_signal(number)
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def read(client: SemelClient, topic: str, *, at_least: int = 0) -> list[ConsumerRecord]:
    """Return the records of a topic that readers see now, or as soon as there are enough."""
    described = await client.admin().describe_topic(topic)
    places = [TopicPartition(topic, each.partition) for each in described.partitions]
    records: list[ConsumerRecord] = []
    async with client.consumer(options=EARLIEST) as consumer:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        while len(records) < at_least or any(
            consumer.positions().get(each, 0) < offset for each, offset in ends.items()
        ):
            for polled in (await consumer.poll()).values():
                records += polled
    return records


# -- worker.py -------------------------------------------------------------------------------------


@pytest_asyncio.fixture(loop_scope="module")
async def orders(client: SemelClient) -> AsyncIterator[SemelClient]:
    """The topics of the worker, empty."""
    admin = client.admin()
    topics = ("orders", "income", "orders-rejected")
    for topic in topics:
        await admin.create_topic(topic, partitions=2)
    yield client
    for topic in topics:
        await admin.delete_topic(topic)
    await admin.groups.delete("billing")


async def test_a_worker_counts_each_order_once_through_kills(
    cluster: LocalCluster, orders: SemelClient
) -> None:
    total, kills = 900, 3
    async with orders.producer() as producer:
        for kill in range(kills):
            worker = await start(cluster, "worker.py")
            await said(worker, "working")
            for number in range(kill * total // kills, (kill + 1) * total // kills):
                order = {"customer": f"customer-{number}", "cents": number}
                await producer.send("orders", json.dumps(order).encode(), partition=number % 2)
            for broken in BROKEN:
                await producer.send("orders", broken, partition=kill % 2)
            await producer.flush()
            status, _ = await end(worker, signal.SIGKILL)
            assert status == -signal.SIGKILL
    worker = await start(cluster, "worker.py")
    income = await read(orders, "income", at_least=total)
    rejected = await read(orders, "orders-rejected", at_least=kills * len(BROKEN))
    status, output = await end(worker, signal.SIGTERM)
    assert status == 0
    assert "ended: " in output
    expected = Counter((f"customer-{number}", number) for number in range(total))
    assert (
        Counter(((each.key or b"").decode(), int(each.value or b"")) for each in income) == expected
    )
    assert Counter(each.value for each in rejected) == Counter(BROKEN * kills)
    assert all(dict(each.headers)["error"] for each in rejected)


@SIGNALS
async def test_a_worker_ends_in_order_at_a_signal(
    cluster: LocalCluster, orders: SemelClient, number: signal.Signals
) -> None:
    worker = await start(cluster, "worker.py")
    await said(worker, "working")
    async with orders.producer() as producer:
        await producer.send_and_wait("orders", b'{"customer": "alice", "cents": 1}')
    await read(orders, "income", at_least=1)
    status, output = await end(worker, number)
    assert (status, output) == (0, f"{number.name}: ending\nended: 1 orders, 0 rejected\n")
    assert not (await orders.admin().operators.list_open_transactions()).transactions


# -- joint_writer.py -------------------------------------------------------------------------------


async def test_a_load_is_there_once_and_whole_through_kills(
    cluster: LocalCluster, client: SemelClient
) -> None:
    await client.admin().create_topic("load", partitions=2)
    for delay_s in (0.0, 0.1, 0.3):
        killed = await start(cluster, "joint_writer.py", "1")
        await said(killed, "loading")
        await asyncio.sleep(delay_s)
        with suppress(ProcessLookupError):  # a fast machine has loaded all
            await end(killed, signal.SIGKILL)
        await killed.wait()
        assert len(await read(client, "load")) in (0, 3_000)
    await run(cluster, "joint_writer.py", "1")
    rows = {each.value for each in await read(client, "load")}
    assert len(rows) == 3_000
    assert "ALREADY_COMMITTED" in await run(cluster, "joint_writer.py", "1")
    assert "version 2: COMMITTED" in await run(cluster, "joint_writer.py", "2")
    assert len(await read(client, "load")) == 6_000


@SIGNALS
async def test_a_load_is_aborted_at_a_signal(cluster: LocalCluster, number: signal.Signals) -> None:
    load = await start(cluster, "joint_writer.py", "100")
    await said(load, "loading")
    status, output = await end(load, number)
    assert (status, output) == (1, "version 100 is aborted: start it again\n")


# -- table_topic.py --------------------------------------------------------------------------------


async def test_a_table_has_the_last_value_of_each_key(
    cluster: LocalCluster, client: SemelClient
) -> None:
    await client.admin().create_topic("prices", partitions=2, configs={"cleanup.policy": "compact"})
    for command in (
        ("set", "margherita", "8.00"),
        ("set", "quattro", "11.00"),
        ("set", "margherita", "8.50"),
        ("delete", "quattro"),
        ("set", "napoli", "9.00"),
    ):
        assert await run(cluster, "table_topic.py", *command) == ""
    assert await run(cluster, "table_topic.py", "show") == "margherita 8.50\nnapoli 9.00\n"

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        follower = await start(cluster, "table_topic.py", "follow")
        await said(follower, "following")
        await run(cluster, "table_topic.py", "set", "diavola", f"{number}.00")
        await said(follower, f"diavola {number}.00")
        await run(cluster, "table_topic.py", "delete", "diavola")
        await said(follower, "diavola is deleted")
        assert await end(follower, number) == (0, "ended\n")
