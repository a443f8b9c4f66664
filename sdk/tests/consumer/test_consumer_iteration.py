"""Records one by one: the cheap way through a batch keeps all promises of ``poll``."""

import asyncio

import pytest
from consumer_harness import Member, client_of, pass_time, settle
from fake_cluster import FakeCluster

from aiosemel import ColumnBatch, Consumer, OffsetReset, SemelClient, TopicPartition
from aiosemel._consumer.partition_state import Chunk, Opened, PositionState
from aiosemel._consumer.positions import Positions
from aiosemel.errors import ClosedError, IllegalStateError

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("orders", 2)
    for partition in range(2):
        for batch in range(2):
            fake.append("orders", partition, [b"%d" % (batch * 3 + i) for i in range(3)])
    return fake


async def take(consumer: Consumer, count: int) -> list[tuple[int, int]]:
    """Take so many records; returns their partitions and offsets."""
    taken: list[tuple[int, int]] = []
    async for record in consumer:
        taken.append((record.partition, record.offset))
        assert consumer.positions()[TopicPartition("orders", record.partition)] == record.offset + 1
        if len(taken) == count:
            break
    return taken


async def test_all_records_come_once_and_in_order_by_partition(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P0, P1])
        taken = await take(consumer, 12)
        for partition in range(2):
            assert [o for p, o in taken if p == partition] == list(range(6))


async def test_a_seek_in_the_middle_of_a_batch_counts_at_once(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P0])
        assert await take(consumer, 2) == [(0, 0), (0, 1)]
        consumer.seek(P0, 5)
        assert await take(consumer, 1) == [(0, 5)]


async def test_polling_and_iterating_take_turns(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P0])
        assert await take(consumer, 1) == [(0, 0)]
        (records,) = (await consumer.poll(1)).values()
        assert records[0].offset == 1
        assert await take(consumer, 2) == [(0, 2), (0, 3)]


async def test_a_rebalance_in_the_middle_of_a_batch_is_heard_of(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        first = Member.of(client)
        await settle(first)
        first.consumer.seek_to_beginning()
        await take(first.consumer, 1)
        second = Member.of(client)
        await second.poll()
        await pass_time(3)
        assert first.told[-1][0] == "assigned"
        await take(first.consumer, 1)
        assert first.told[-1][0] == "revoked"


async def test_iteration_notes_that_the_user_is_alive(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client, max_poll_interval_ms=10_000)
        await settle(member)
        member.consumer.seek_to_beginning()
        for _ in range(12):
            await take(member.consumer, 1)
            await pass_time(6)
        assert [what for what, _ in member.told] == ["assigned"]


async def test_a_closed_or_busy_consumer_gives_no_record_of_a_batch(fake: FakeCluster) -> None:
    async with client_of(fake) as client, asyncio.TaskGroup() as group:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P0])
        await take(consumer, 1)
        polling = group.create_task(consumer.poll(1))
        await asyncio.sleep(0)
        with pytest.raises(IllegalStateError, match="another task"):
            await anext(consumer)
        await polling
        await consumer.close()
        with pytest.raises(StopAsyncIteration):
            await anext(consumer)
        with pytest.raises(ClosedError):
            await take(consumer, 1)


async def test_closing_ends_the_iteration_of_another_task_and_wakeup_does_not(
    fake: FakeCluster,
) -> None:
    async with client_of(fake) as client, asyncio.TaskGroup() as group:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([P0])
        taking = group.create_task(take(consumer, 100))
        await pass_time(1)
        for _ in range(3):
            consumer.wakeup()
            await pass_time(1)
        assert not taking.done()
        await consumer.close()
        assert len(await taking) == 6


async def test_a_client_that_is_not_open_does_not_end_an_iteration_silently() -> None:
    consumer = SemelClient("localhost:1").consumer()
    consumer.assign([P0])
    with pytest.raises(ClosedError, match="client is not open"):
        await take(consumer, 1)


def test_the_cheap_way_ends_with_the_batch_or_the_partition() -> None:
    def opened(topic_partition: TopicPartition, base_offset: int) -> Opened:
        records = ColumnBatch(
            topic_partition=topic_partition,
            offsets=range(base_offset, base_offset + 3),
            values=[b"a", b"b", b"c"],
            keys=None,
            timestamps_ms=[0, 0, 0],
            headers={},
        )
        return Opened(records, 3)

    positions = Positions(
        opened, policy=OffsetReset.LATEST, prefetch_max_bytes=100, partition_max_bytes=100
    )
    assert positions.take_record() is None
    positions.assign(P0, "id")
    (question,) = positions.awaiting(PositionState.AWAITING_COMMITTED)
    positions.committed(question.ticket, 0)
    (asked,) = positions.fetchable()
    chunks = [Chunk(batch=at, size_bytes=1, next_offset=at + 3) for at in (0, 3)]
    positions.fetched(asked, chunks, 8)
    positions.take(1)
    rest = [positions.take_record() for _ in range(3)]
    assert [record and record.offset for record in rest] == [1, 2, None]
    assert positions.position(P0) == 3
    positions.take(2)
    last = positions.take_record()
    assert last is not None
    assert last.offset == 5
    assert positions.position(P0) == 8
    positions.unassign(P0)
    assert positions.take_record() is None
