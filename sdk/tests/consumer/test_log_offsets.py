"""Where logs begin and end, and where a moment is in them."""

import asyncio

import pytest
from consumer_harness import client_of
from fake_cluster import FakeCluster

from aiosemel import OffsetAndTimestamp, TopicPartition
from aiosemel.errors import (
    ClosedError,
    InvalidRequestError,
    KafkaStorageError,
    NetworkExceptionError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.create_topic("orders", 2)
    fake.append("orders", 0, [b"a", b"b"])
    fake.append("orders", 0, [b"undecided"])
    fake.log("orders").open_from = 2
    return fake


async def test_ends_are_found_for_each_isolation_level(fake: FakeCluster) -> None:
    """C-004: the end is the last stable offset."""
    async with client_of(fake) as client:
        committed = client.consumer()
        assert await committed.beginning_offsets([P0, P1]) == {P0: 0, P1: 0}
        assert await committed.end_offsets([P0, P1]) == {P0: 2, P1: 0}
        everything = client.consumer(isolation_level="read_uncommitted")
        assert await everything.end_offsets([("orders", 0)]) == {P0: 3}
        assert await committed.end_offsets([]) == {}


async def test_a_moment_is_found_where_committed_records_are(fake: FakeCluster) -> None:
    """C-004: a look-up by time finds nothing that is undecided."""
    fake.log("orders").open_from = 0
    async with client_of(fake) as client:
        consumer = client.consumer()
        assert await consumer.offsets_for_times({P0: 500}) == {P0: None}
        fake.log("orders").open_from = None
        found = await consumer.offsets_for_times({P0: 500, ("orders", 1): 500})
        assert found == {P0: OffsetAndTimestamp(0, 1_000), P1: None}
        assert await consumer.offsets_for_times({P0: 5_000}) == {P0: None}


async def test_leaders_that_move_or_fail_are_asked_again(fake: FakeCluster) -> None:
    fake.refusals["ListOffsets"].append(NotLeaderOrFollowerError("moved"))
    fake.faults["ListOffsets"].extend([NetworkExceptionError("lost"), KafkaStorageError("full")])
    async with client_of(fake) as client:
        assert await client.consumer().end_offsets([P0, P1]) == {P0: 2, P1: 0}


async def test_a_broker_that_is_not_there_yet_is_waited_for(fake: FakeCluster) -> None:
    fake.log("orders").leader = 2
    async with client_of(fake) as client:
        consumer = client.consumer()
        with pytest.raises(RequestTimedOutError):
            await consumer.end_offsets([P0], timeout_ms=1_000)
        asyncio.get_running_loop().call_later(1, setattr, fake, "brokers", 3)
        assert await consumer.end_offsets([P0]) == {P0: 2}


async def test_a_missing_thing_is_refused(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer()
        with pytest.raises(UnknownTopicOrPartitionError, match="no partition 7"):
            await consumer.end_offsets([("orders", 7)])
        fake.refusals["ListOffsets"].append(InvalidRequestError("no"))
        with pytest.raises(InvalidRequestError):
            await consumer.end_offsets([P0])
        await consumer.close()
        with pytest.raises(ClosedError):
            await consumer.beginning_offsets([P0])
        with pytest.raises(ClosedError):
            await consumer.offsets_for_times({P0: 0})
