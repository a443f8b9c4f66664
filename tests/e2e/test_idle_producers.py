"""Producers that were idle for longer than brokers remember them: all is stored, and once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from aiosemel import ConsumerOptions, OffsetReset, ProducerOptions, SemelClient
from semel_local import LocalCluster, ProcessCluster
from semel_local.layout import Role

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTITIONS = range(3)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def forgetful() -> AsyncIterator[LocalCluster]:
    """A cluster that forgets producers at once."""
    settings = {
        "producer_id_expiration_ms": 1,
        "producer_id_expiration_check_interval_ms": 5,
    }
    of_roles = {Role.BROKER: settings, Role.GROUP_COORDINATOR: settings}
    async with LocalCluster(brokers=2, settings=of_roles) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def forgetting(forgetful: LocalCluster, name: str) -> AsyncIterator[SemelClient]:
    """A client of it, and a topic with the name of the test."""
    async with forgetful.client() as client:
        await client.admin().create_topic(name, partitions=len(PARTITIONS))
        yield client


async def forgotten(client: SemelClient, topic: str, *, but: int = 0) -> None:
    """Wait until the brokers know no producer of any partition, or only so many."""
    operators = client.admin().operators
    async with asyncio.timeout(30):
        for partition in PARTITIONS:
            while len((await operators.describe_producers((topic, partition))).producers) > but:
                pass


async def read(client: SemelClient, topic: str, count: int) -> dict[int, list[bytes | None]]:
    """Read so many records from the beginning; return them by their partitions."""
    values: dict[int, list[bytes | None]] = {partition: [] for partition in PARTITIONS}
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=50)
    async with client.consumer(options=options) as consumer:
        consumer.assign((topic, partition) for partition in PARTITIONS)
        async with asyncio.timeout(20):
            while sum(map(len, values.values())) < count:
                for (_, partition), records in (await consumer.poll()).items():
                    values[partition] += [record.value for record in records]
        assert not await consumer.poll(timeout_ms=50)
    return values


async def test_an_idle_producer_goes_on_in_every_partition(
    forgetting: SemelClient, name: str
) -> None:
    async with forgetting.producer() as producer:
        for number in range(3):
            sent = [
                await producer.send(name, b"%d" % number, partition=partition)
                for partition in PARTITIONS
            ]
            for delivery in sent:
                await delivery
            await forgotten(forgetting, name)
    values = await read(forgetting, name, 9)
    assert values == {partition: [b"0", b"1", b"2"] for partition in PARTITIONS}


async def test_several_batches_in_flight_go_on_in_order(forgetting: SemelClient, name: str) -> None:
    expected = [b"%d" % number for number in range(8)]
    async with forgetting.producer(ProducerOptions(batch_size_bytes=17)) as producer:
        await producer.send_and_wait(name, expected[0], partition=0)
        await forgotten(forgetting, name)
        for value in expected[1:]:  # Each is a batch: five of them are in flight at once.
            await producer.send(name, value, partition=0)
        await producer.flush()
    assert (await read(forgetting, name, 8))[0] == expected


async def test_an_append_at_an_offset_goes_on_too(forgetting: SemelClient, name: str) -> None:
    async with forgetting.producer() as producer:
        for offset in range(3):
            await producer.append(name, [b"%d" % offset], partition=0, expected_base_offset=offset)
            await forgotten(forgetting, name)
    assert (await read(forgetting, name, 3))[0] == [b"0", b"1", b"2"]


async def test_a_producer_that_was_forgotten_goes_on_after_its_partition_has_moved(
    forgetting: SemelClient, name: str
) -> None:
    admin = forgetting.admin()
    async with forgetting.producer() as producer:
        await producer.send_and_wait(name, b"0", partition=0)
        leader_id = (await admin.describe_topic(name)).partitions[0].leader_id
        await admin.moves.alter_partition_reassignments({(name, 0): 1 - leader_id})
        moved = await admin.moves.wait_for_reassignments([(name, 0)])
        assert [*moved.values()] == [1 - leader_id]
        await forgotten(forgetting, name)
        await producer.send_and_wait(name, b"1", partition=0)
    assert (await read(forgetting, name, 2))[0] == [b"0", b"1"]


async def test_no_transaction_loses_anything_by_idleness(
    forgetting: SemelClient, name: str
) -> None:
    """Its participants remember it while it is open; each has sequences of its own epoch."""
    async with (
        forgetting.transactional_producer(name) as producer,
        forgetting.producer() as other,
    ):
        await producer.init_transactions()
        for number in range(3):
            async with producer.transaction(wait_until_visible=True) as transaction:
                for half in (b"a", b"b"):
                    await transaction.send_and_wait(name, b"%d%s" % (number, half), partition=0)
                    await other.send_and_wait(name, half, partition=1)
                    await forgotten(forgetting, name, but=1)
            await forgotten(forgetting, name)
    values = await read(forgetting, name, 12)
    assert values[0] == [b"%d%s" % (number, half) for number in range(3) for half in (b"a", b"b")]


async def test_a_first_attempt_without_an_answer_is_sent_again_after_idleness(
    tmp_path: Path,
) -> None:
    """The broker's memory is shorter than the idleness, and longer than the batch is old."""
    settings = {
        "producer_id_expiration_ms": 10_000,
        "producer_id_expiration_check_interval_ms": 50,
    }
    async with (
        ProcessCluster(tmp_path, settings={Role.BROKER: settings}) as cluster,
        SemelClient(cluster.bootstrap) as client,
    ):
        await client.admin().create_topic("t", partitions=3)
        async with client.producer() as producer:
            await producer.send_and_wait("t", b"0", partition=0)
            await forgotten(client, "t")
            await cluster.kill("broker-0")
            sent = await producer.send("t", b"1", partition=0)
            await asyncio.sleep(0.1)  # The first attempts fail: nothing says that they are lost.
            await cluster.start("broker-0")
            await sent
        assert (await read(client, "t", 2))[0] == [b"0", b"1"]


async def test_transactional_ids_that_are_idle_for_long_lose_no_block() -> None:
    """The coordinator forgets them before each block."""
    settings = {
        "transactional_id_expiration_ms": 1_000,
        "transaction_remove_expired_transaction_cleanup_interval_ms": 50,
    }
    async with (
        LocalCluster(settings={Role.COORDINATOR: settings}) as cluster,
        cluster.client() as client,
        client.transactions("orders", size=3) as pool,
        client.transactional_producer("alone") as alone,
    ):
        await client.admin().create_topic("t", partitions=len(PARTITIONS))
        await alone.init_transactions()
        for day in (b"1", b"2"):
            async with asyncio.timeout(20):
                while await client.admin().list_transactions():
                    pass
            for _ in range(3):
                async with pool.transaction() as transaction:
                    await transaction.send("t", day, partition=0)
            async with alone.transaction() as transaction:
                await transaction.send("t", day, partition=1)
        values = await read(client, "t", 8)
    assert values == {0: [b"1"] * 3 + [b"2"] * 3, 1: [b"1", b"2"], 2: []}
