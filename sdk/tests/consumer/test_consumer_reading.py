"""Reading partitions that were assigned by hand: positions, isolation, faults."""

from consumer_harness import FakeCluster, client_of

from aiosemel.offsets import TopicPartition

ORDERS = TopicPartition("orders", 0)


async def test_poll_returns_records_from_the_beginning_in_offset_order() -> None:
    fake = FakeCluster()
    fake.create_topic("orders")
    fake.append("orders", 0, [b"a", b"b"], keys=[b"k", None], headers={1: (("h", b"1"),)})
    fake.append("orders", 0, [None])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        polled = await consumer.poll()
        first, second, third = polled[ORDERS]
        assert (first.offset, first.key, first.value, first.headers) == (0, b"k", b"a", ())
        assert (second.offset, second.key, second.headers) == (1, None, (("h", b"1"),))
        assert (third.offset, third.value, third.timestamp_ms) == (2, None, 1_000)
        assert await consumer.position(ORDERS) == 3
        assert await consumer.poll(timeout_ms=700) == {}


async def test_members_share_partitions() -> None:
    fake = FakeCluster(2)
    fake.create_topic("orders", 4)
    for p in range(4):
        fake.append("orders", p, [b"a", b"b"])
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.subscribe(["orders"])
        got = []
        for _ in range(10):
            got += [r for rs in (await consumer.poll()).values() for r in rs]
        assert len(got) == 8
        await consumer.commit()
        other = client.consumer("g", auto_offset_reset="earliest")
        other.subscribe(["orders"])
        for _ in range(10):
            assert not await other.poll()
            assert not await consumer.poll()
        assert len(consumer.assignment()) == 2
        assert len(other.assignment()) == 2
