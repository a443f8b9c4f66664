"""Partitions that are paused: nothing comes of them, and they stay with their consumer."""

import asyncio

import pytest
from consumer_harness import Member, client_of, pass_time, settle
from fake_cluster import FakeCluster

from aiosemel import Consumer, TopicPartition
from aiosemel.errors import IllegalStateError, OffsetOutOfRangeError
from semel.broker.v1.broker_pb2 import FetchRequest

P0, P1 = (TopicPartition("orders", number) for number in range(2))
IN_TIME_MS = 10_000


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("orders", 2)
    fake.append("orders", 0, [b"a0", b"a1"])
    fake.append("orders", 1, [b"b0"])
    return fake


async def poll(consumer: Consumer, times: int = 3) -> set[bytes | None]:
    """Return what a few polls bring, by which everything has arrived."""
    return {
        record.value
        for _ in range(times)
        for records in (await consumer.poll()).values()
        for record in records
    }


def fetched(fake: FakeCluster) -> set[int]:
    """Return the partitions that were asked for."""
    requests = [question for question in fake.asked("Fetch") if isinstance(question, FetchRequest)]
    return {partition.partition for request in requests for partition in request.partitions}


async def test_a_paused_partition_gives_nothing_until_it_is_resumed(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P0, P1])
        consumer.pause(P0)
        assert consumer.paused() == {P0}
        assert await poll(consumer) == {b"b0"}
        assert fetched(fake) == {1}, "what nobody wants is not fetched"
        consumer.resume(P0)
        assert consumer.paused() == frozenset()
        assert await poll(consumer) == {b"a0", b"a1"}


async def test_what_was_fetched_before_a_pause_is_there_after_it(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P0])
        (first,) = (await consumer.poll(max_records=1, timeout_ms=IN_TIME_MS))[P0]
        assert first.value == b"a0"
        consumer.pause()
        assert consumer.paused() == {P0}
        assert await poll(consumer) == set()
        assert await consumer.position(P0) == 1
        fetches = len(fake.asked("Fetch"))
        consumer.resume()
        (second,) = (await consumer.poll(timeout_ms=0))[P0]
        assert second.value == b"a1"
        assert len(fake.asked("Fetch")) == fetches


async def test_iteration_passes_over_a_batch_that_was_paused_in_its_middle(
    fake: FakeCluster,
) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P0])
        assert (await anext(consumer)).value == b"a0"
        consumer.assign([P0, P1])
        consumer.pause(P0)
        assert (await anext(consumer)).value == b"b0"
        consumer.resume(P0)
        assert (await anext(consumer)).value == b"a1"


async def test_a_poll_that_waits_gets_what_is_resumed_meanwhile(fake: FakeCluster) -> None:
    async with client_of(fake) as client, asyncio.TaskGroup() as group:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P1])
        consumer.pause(P1)
        waiting = group.create_task(consumer.poll(timeout_ms=IN_TIME_MS))
        await pass_time(1)
        assert not waiting.done()
        consumer.resume(P1)
        assert [record.value for record in (await waiting)[P1]] == [b"b0"]
        assert asyncio.get_running_loop().time() == pytest.approx(1)


async def test_a_seek_leaves_a_partition_paused(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P0])
        consumer.pause(P0)
        consumer.seek(P0, 1)
        assert await poll(consumer) == set()
        consumer.resume(P0)
        assert await poll(consumer) == {b"a1"}


async def test_what_is_wrong_with_a_paused_partition_is_told_after_it(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="none")
        consumer.assign([P0])
        consumer.seek(P0, 7)
        assert await consumer.poll(timeout_ms=0) == {}
        await pass_time(0.1)
        assert fake.asked("Fetch")
        consumer.pause(P0)
        assert await poll(consumer) == set()
        consumer.resume(P0)
        with pytest.raises(OffsetOutOfRangeError, match="orders-0: offset 7 is not within"):
            await consumer.poll(timeout_ms=IN_TIME_MS)


async def test_a_member_that_polls_keeps_what_it_paused(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        consumer = member.consumer
        consumer.pause()
        for _ in range(700):  # of half a second each: longer than max_poll_interval_ms
            await consumer.poll()
        assert consumer.assignment() == consumer.paused() == {P0, P1}
        assert member.told == [("assigned", frozenset({P0, P1}))]


async def test_a_partition_that_is_not_held_cannot_be_paused(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([P0])
        for refused in (consumer.pause, consumer.resume):
            with pytest.raises(IllegalStateError, match="orders-1 is not assigned"):
                refused(P0, P1)
        assert consumer.paused() == frozenset()
        consumer.pause(P0)
        consumer.assign([P1])
        consumer.assign([P0, P1])
        assert consumer.paused() == frozenset(), "what comes again is not paused"
