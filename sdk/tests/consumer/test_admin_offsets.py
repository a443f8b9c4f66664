"""Offsets as an operator asks for them: of logs, and of groups."""

import asyncio

import pytest
from fake_cluster import FakeCluster

from aiosemel import (
    IsolationLevel,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    SemelClient,
    TopicPartition,
)
from aiosemel.errors import (
    InvalidGroupIdError,
    InvalidPartitionsError,
    InvalidTopicError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from semel_common import ids


def open_client(fake: FakeCluster) -> SemelClient:
    return SemelClient("coordinator:1", connector=fake)


P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.create_topic("orders", 2)
    fake.append("orders", 0, [b"a", b"b"])
    fake.append("orders", 0, [b"undecided"])
    fake.log("orders").open_from = 2
    fake.committed[ids.TopicPartition(fake.topics["orders"], 0)] = (1, "noted")
    return fake


async def test_ends_and_moments_of_logs_are_listed(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        admin = client.admin()
        assert await admin.list_offsets({P0: OffsetSpec.EARLIEST, ("orders", 1): 7}) == {
            P0: OffsetAndTimestamp(0, -1),
            P1: None,
        }
        latest = {P0: OffsetSpec.LATEST}
        assert await admin.list_offsets(latest) == {P0: OffsetAndTimestamp(3, -1)}
        stable = await admin.list_offsets(latest, isolation_level=IsolationLevel.READ_COMMITTED)
        assert stable == {P0: OffsetAndTimestamp(2, -1)}
        with pytest.raises(UnknownTopicOrPartitionError, match="no partition 7"):
            await admin.list_offsets({("orders", 7): OffsetSpec.LATEST})


async def test_what_a_group_has_committed_is_listed(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        admin = client.admin()
        noted = OffsetAndMetadata(1, "noted")
        assert await admin.list_consumer_group_offsets("g") == {P0: noted}
        named = await admin.list_consumer_group_offsets("g", [P1, ("orders", 0)])
        assert named == {P1: None, P0: noted}
        assert await admin.list_consumer_group_offsets("g", []) == {}


async def test_offsets_that_may_still_change_are_waited_for_if_asked(fake: FakeCluster) -> None:
    key = ids.TopicPartition(fake.topics["orders"], 0)
    fake.unstable.add(key)
    async with open_client(fake) as client:
        admin = client.admin()
        noted = {P0: OffsetAndMetadata(1, "noted")}
        assert await admin.list_consumer_group_offsets("g") == noted
        with pytest.raises(UnstableOffsetCommitError):
            await admin.list_consumer_group_offsets("g", require_stable=True)
        asyncio.get_running_loop().call_later(1, fake.unstable.discard, key)
        assert await admin.list_consumer_group_offsets("g", require_stable=True) == noted


async def test_an_empty_group_id_is_refused_before_it_is_sent(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        with pytest.raises(InvalidGroupIdError, match="empty"):
            await client.admin().list_consumer_group_offsets("")
        with pytest.raises(InvalidGroupIdError, match="empty"):
            client.consumer("")


async def test_what_a_consumer_answers_it_takes_back(fake: FakeCluster) -> None:
    """Also in the eyes of a type checker, which reads this file."""
    async with open_client(fake) as client:
        consumer = client.consumer("g")
        consumer.assign([P0])
        assert await consumer.position(P0) == 1
        await consumer.commit(consumer.positions())
        await consumer.commit({("orders", 0): OffsetAndMetadata(2, "again")})
        assert await consumer.committed([P0]) == {P0: OffsetAndMetadata(2, "again")}
        await consumer.offsets_for_times(dict.fromkeys(consumer.assignment(), 0))


@pytest.mark.parametrize("wrong", ["orders", ["orders"], [("orders", "0")], [0]])
async def test_what_names_no_partition_is_refused_with_what_would(
    fake: FakeCluster, wrong: list[tuple[str, int]]
) -> None:
    async with open_client(fake) as client:
        with pytest.raises(TypeError, match=r"named by \(topic, number\), not by"):
            client.consumer().assign(wrong)
        with pytest.raises(TypeError, match=r"named by \(topic, number\), not by"):
            await client.admin().list_consumer_group_offsets("g", wrong)


async def test_names_that_no_topic_can_have_are_not_subscribed_to(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        consumer = client.consumer("g")
        for wrong in ("", "a/b", "x" * 250):
            with pytest.raises(InvalidTopicError, match="not 1 to 249 characters"):
                consumer.subscribe(["orders", wrong])
        consumer.assign([P0])
        with pytest.raises(TypeError, match="offset must be int, not float"):
            consumer.seek(P0, 1.5)  # type: ignore[arg-type]  # that is the point


async def test_no_topic_has_zero_partitions(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        with pytest.raises(InvalidPartitionsError, match="'new' cannot have 0 partitions"):
            await client.admin().create_topic("new", partitions=0)
