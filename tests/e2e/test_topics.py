"""Topics from end to end: more partitions, options, and records that are deleted or too old."""

import asyncio

import pytest

from aiosemel import (
    ConsumerOptions,
    OffsetReset,
    OffsetSpec,
    SemelClient,
    TopicPartition,
)
from aiosemel.errors import OffsetOutOfRangeError

pytestmark = pytest.mark.asyncio(loop_scope="session")

EARLIEST = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=50)


async def start_of(client: SemelClient, topic: str, partition: int = 0) -> int:
    """Return where a partition starts."""
    place = TopicPartition(topic, partition)
    found = (await client.admin().list_offsets({place: OffsetSpec.EARLIEST}))[place]
    assert found is not None
    return found.offset


async def test_members_of_a_group_get_the_partitions_that_a_topic_gets(
    client: SemelClient, topic: str, name: str
) -> None:
    async with (
        asyncio.timeout(40),
        client.consumer(name, options=EARLIEST) as consumer,
        client.producer() as producer,
    ):
        consumer.subscribe([topic])
        await (await producer.send(topic, b"old", partition=3))
        found: list[bytes | None] = []
        while b"old" not in found:
            for records in (await consumer.poll(timeout_ms=200)).values():
                found += [record.value for record in records]
        assert await client.admin().create_partitions(topic, 6) == 6
        new = TopicPartition(topic, 5)
        await (await producer.send(topic, b"new", partition=5))
        while b"new" not in found:
            for records in (await consumer.poll(timeout_ms=200)).values():
                found += [record.value for record in records]
        assert new in consumer.assignment()
    assert found == [b"old", b"new"]


async def test_what_a_topic_does_not_keep_is_deleted_but_nothing_that_is_open(
    client: SemelClient, topic: str, name: str
) -> None:
    admin = client.admin()
    async with client.producer() as producer:
        for _ in range(3):
            await (await producer.send(topic, b"old", partition=0))
    transactional = client.transactional_producer(name)
    await transactional.init_transactions()
    await transactional.begin_transaction()
    await (await transactional.send(topic, b"open", partition=0))
    options = {"retention.bytes": 0, "segment.bytes": 1_024, "segment.ms": 1}
    await admin.incremental_alter_configs(topic, set_configs=options)
    with pytest.raises(OffsetOutOfRangeError, match="last stable offset 3"):
        await admin.delete_records({(topic, 0): 4})
    deleted = await admin.delete_records({(topic, 0): None})
    assert deleted[TopicPartition(topic, 0)].log_start_offset == 3
    assert await start_of(client, topic) == 3
    await transactional.commit()
    async with client.consumer(options=EARLIEST) as consumer:
        consumer.assign([(topic, 0)])
        polled = await consumer.poll(timeout_ms=5_000)
    assert [record.value for records in polled.values() for record in records] == [b"open"]


async def test_retention_follows_a_topic_s_options(client: SemelClient, topic: str) -> None:
    admin = client.admin()
    async with client.producer() as producer:
        await (await producer.send(topic, b"old", partition=0))
    await admin.incremental_alter_configs(topic, set_configs={"retention.bytes": 0})
    async with asyncio.timeout(20):
        while await start_of(client, topic) != 1:
            pass
    async with client.consumer(options=EARLIEST) as consumer:
        consumer.assign([(topic, 0)])
        assert await consumer.poll(timeout_ms=100) == {}


async def test_records_for_more_partitions_than_a_broker_takes_at_once_are_stored(
    client: SemelClient, name: str
) -> None:
    """1,100 for each of three brokers, which take 1,000 in one request."""
    await client.admin().create_topic(name, partitions=3_300)
    producer = client.producer()
    deliveries = [await producer.send(name, b"v", partition=number) for number in range(3_300)]
    await producer.flush()
    assert {delivery.result().offset for delivery in deliveries} == {0}
    await client.admin().delete_topic(name)
