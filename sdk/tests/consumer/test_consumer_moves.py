"""What readers do while partitions move: they go on where they were."""

import asyncio

import pytest
from consumer_harness import client_of, pass_time
from fake_cluster import FakeCluster

from aiosemel import Consumer, TopicPartition
from aiosemel.errors import NotLeaderOrFollowerError

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.create_topic("orders")
    return fake


def move(fake: FakeCluster, to: int) -> None:
    """Let another broker lead; the old one answers the requests that wait there."""
    fake.log("orders").leader = to
    fake.version += 1
    fake.changed.notify()


async def read(consumer: Consumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < count:
        polled = await consumer.poll(timeout_ms=60_000)
        found += [record.value for records in polled.values() for record in records]
    return found


async def test_a_fetch_that_waits_goes_on_at_the_new_leader(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest", fetch_max_wait_ms=20_000)
        consumer.assign([ORDERS])
        assert await read(consumer, 2) == [b"a", b"b"]
        reading = asyncio.create_task(read(consumer, 1))
        await pass_time(0.1)
        assert fake.parked == 1
        move(fake, to=1)
        await pass_time(0.5)
        assert fake.calls[-1][:2] == ("Fetch", "broker1:1")
        assert fake.parked == 1
        fake.append("orders", 0, [b"c"])
        assert await reading == [b"c"]
        assert await consumer.position(ORDERS) == 3


async def test_while_no_broker_serves_a_partition_no_record_is_lost_or_read_twice(
    fake: FakeCluster,
) -> None:
    fake.append("orders", 0, [b"a"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="latest")
        consumer.assign([ORDERS])
        consumer.seek(ORDERS, 0)
        assert await read(consumer, 1) == [b"a"]
        handed_over = NotLeaderOrFollowerError("handed over")
        fake.refusals["Fetch"].extend([handed_over] * 5)
        fake.append("orders", 0, [b"b"])
        reading = asyncio.create_task(read(consumer, 2))
        await pass_time(0.3)
        move(fake, to=1)
        fake.append("orders", 0, [b"c"])
        assert await reading == [b"b", b"c"]
