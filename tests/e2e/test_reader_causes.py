"""Each cause why a group sees no records, on a cluster that real clients have brought into it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aiosemel import (
    ClientOptions,
    Consumer,
    ConsumerOptions,
    KnownOutcome,
    OffsetReset,
    ReaderCause,
    ReaderStanding,
    SemelClient,
)
from aiosemel._cluster.retry import Deadline
from semel.group.v1 import group_pb2 as group
from semel_common.wire import methods
from semel_local import LocalCluster

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTITIONS = 4
OPTIONS = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)


async def explained(client: SemelClient, group_id: str, topic: str) -> ReaderStanding:
    return await client.admin().operators.explain_reader(group_id, (topic, 0))


async def becomes(
    client: SemelClient, group_id: str, topic: str, cause: ReaderCause, partition: int = 0
) -> ReaderStanding:
    """Ask until this is the cause."""
    async with asyncio.timeout(20):
        while True:
            found = await client.admin().operators.explain_reader(group_id, (topic, partition))
            if found.cause is cause:
                return found


@asynccontextmanager
async def reading(
    client: SemelClient, group_id: str, topic: str, options: ConsumerOptions = OPTIONS
) -> AsyncIterator[Consumer]:
    """Run a consumer that holds all partitions, and commits nothing by itself."""
    async with client.consumer(group_id, options) as consumer:
        consumer.subscribe([topic])
        async with asyncio.timeout(20):
            while len(consumer.assignment()) < PARTITIONS:
                await consumer.poll(timeout_ms=20)
        yield consumer


async def write(client: SemelClient, topic: str, count: int) -> None:
    async with client.producer() as producer:
        for number in range(count):
            await producer.send_and_wait(topic, b"%d" % number, partition=0)


async def test_a_group_whose_members_read_other_topics_is_not_subscribed(
    client: SemelClient, topic: str, name: str
) -> None:
    other = f"{name}-other"
    await client.admin().create_topic(other, partitions=PARTITIONS)
    async with reading(client, name, other):
        assert (await explained(client, name, topic)).cause is ReaderCause.NOT_SUBSCRIBED


async def test_a_partition_on_its_way_to_a_silent_member_is_not_held(
    client: SemelClient, topic: str, name: str
) -> None:
    """The member has joined, and sends no second heartbeat."""
    async with reading(client, name, topic) as consumer:
        before = consumer.assignment()
        cluster = client.admin()._cluster
        join = group.ConsumerGroupHeartbeatRequest(
            group_id=name,
            member_id="silent",
            rebalance_timeout_ms=60_000,
            subscription=group.Subscription(topics=[topic]),
        )
        await cluster.call(
            cluster.group_coordinator_of(name),
            methods.CONSUMER_GROUP_HEARTBEAT,
            join,
            deadline=Deadline.after_ms(10_000),
        )
        async with asyncio.timeout(20):
            while consumer.assignment() == before:
                await consumer.poll(timeout_ms=20)
        (partition, *_) = sorted(before - consumer.assignment())
        found = await becomes(client, name, topic, ReaderCause.NOT_HELD, partition.partition)
        assert found.member_id == "silent"


async def test_the_partition_of_a_static_member_that_has_left_waits_for_it(
    client: SemelClient, topic: str, name: str
) -> None:
    static = ConsumerOptions(
        auto_offset_reset=OffsetReset.EARLIEST, group_instance_id=f"{name}-worker"
    )
    async with reading(client, name, topic, static):
        assert (await explained(client, name, topic)).cause is ReaderCause.ALL_READ
    found = await explained(client, name, topic)
    assert found.cause is ReaderCause.MEMBER_AWAY
    assert found.member_id


async def test_an_offset_whose_records_are_deleted_is_below_the_log_start(
    client: SemelClient, topic: str, name: str
) -> None:
    await write(client, topic, 3)
    await client.admin().groups.alter_offsets(name, {(topic, 0): 1})
    async with reading(client, name, topic):
        await client.admin().delete_records({(topic, 0): 2})
        found = await explained(client, name, topic)
    assert found.cause is ReaderCause.BELOW_LOG_START
    assert (found.committed_offset, found.log_start_offset) == (1, 2)


async def test_an_offset_behind_the_end_of_the_log_is_past_the_end(
    client: SemelClient, topic: str, name: str
) -> None:
    await write(client, topic, 1)
    await client.admin().groups.alter_offsets(name, {(topic, 0): 99})
    async with reading(client, name, topic):
        found = await explained(client, name, topic)
    assert found.cause is ReaderCause.PAST_END
    assert (found.committed_offset, found.high_watermark) == (99, 1)


async def test_offsets_in_an_open_transaction_are_pending(
    client: SemelClient, topic: str, name: str
) -> None:
    await write(client, topic, 2)
    async with (
        reading(client, name, topic) as consumer,
        client.transactional_producer(name) as producer,
    ):
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_offsets({(topic, 0): 2}, consumer.group_metadata())
        await producer.flush()
        found = await becomes(client, name, topic, ReaderCause.OFFSETS_PENDING)
        assert found.holder is not None
        assert found.holder.transactional_id == name
        assert found.holder.outcome is KnownOutcome.ONGOING
        await producer.commit(wait_until_visible=True)
        assert (await explained(client, name, topic)).cause is ReaderCause.ALL_READ


@pytest.mark.slow
async def test_a_partition_whose_broker_has_stopped_is_away(name: str) -> None:
    options = ClientOptions(default_api_timeout_ms=3_000, retry_backoff_ms=10)
    async with LocalCluster() as cluster, cluster.client(options) as one:
        await one.admin().create_topic(name, partitions=PARTITIONS)
        async with reading(one, name, name):
            assert (await explained(one, name, name)).cause is ReaderCause.ALL_READ
            await cluster.stop_service("broker-0")
            found = await explained(one, name, name)
            assert found.cause is ReaderCause.PARTITION_AWAY
            assert found.problem.startswith("broker 0 leads it: ")
            await cluster.start_service("broker-0")
            await becomes(one, name, name, ReaderCause.ALL_READ)
