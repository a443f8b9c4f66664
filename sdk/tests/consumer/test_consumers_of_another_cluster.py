"""A cluster is replaced by another one at the same addresses: what consumers say."""

import pytest
from cluster_calls import now
from consumer_harness import client_of
from fake_cluster import FakeCluster

from aiosemel import TopicPartition
from aiosemel.errors import InconsistentClusterIdError

ANOTHER = "this client belongs to cluster c, but .* belongs to cluster other; make a new client"


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create_topic("t")
    cluster.append("t", 0, [b"a"])
    return cluster


async def test_a_poll_of_a_member_raises_it(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.subscribe(["t"])
        assert await consumer.poll(timeout_ms=5_000)
        fake.cluster_id = "other"
        before = now()
        for _ in range(3):
            with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
                await consumer.poll(timeout_ms=60_000)
        assert now() - before < 5


async def test_a_member_without_partitions_hears_of_it_by_its_heartbeat(fake: FakeCluster) -> None:
    fake.target = lambda _: frozenset()
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.subscribe(["t"])
        assert not await consumer.poll(timeout_ms=1_000)
        fake.cluster_id = "other"
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await consumer.poll(timeout_ms=60_000)


async def test_commits_and_reads_of_offsets_raise_it(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.subscribe(["t"])
        assert await consumer.poll(timeout_ms=5_000)
        fake.cluster_id = "other"
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await consumer.commit()
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await consumer.committed([TopicPartition("t", 0)])
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await consumer.end_offsets([TopicPartition("t", 0)])


async def test_a_reader_of_named_partitions_raises_it(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([TopicPartition("t", 0)])
        assert await consumer.poll(timeout_ms=5_000)
        fake.cluster_id = "other"
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await consumer.poll(timeout_ms=60_000)
