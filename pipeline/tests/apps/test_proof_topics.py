"""What the proof reads: all that is committed, also behind what a killed task has left open."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from aiosemel import SemelClient, TransactionalProducer
from semel_local import LocalCluster
from semel_pipelines.proof import topics

TOPIC = "income"


@pytest.fixture
async def client() -> AsyncIterator[SemelClient]:
    """Give a client of a cluster with the topic."""
    async with LocalCluster() as cluster, SemelClient(cluster.bootstrap) as client:
        await client.admin().create_topic(TOPIC, partitions=2)
        yield client


@pytest.fixture
async def killed(client: SemelClient) -> AsyncIterator[TransactionalProducer]:
    """Leave a transaction open, with something committed behind its start."""
    async with client.transactional_producer("killed") as producer, client.producer() as other:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait(TOPIC, b"of the killed one", partition=1)
        await other.send_and_wait(TOPIC, b"first", partition=0)
        await other.send_and_wait(TOPIC, b"behind it", partition=1)
        yield producer


async def test_what_is_behind_an_open_transaction_is_waited_for(
    client: SemelClient, killed: TransactionalProducer
) -> None:
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(topics.read(client, TOPIC), name="read")
        group.create_task(killed.abort(), name="abort")
    assert sorted(reading.result()) == [b"behind it", b"first"]


async def test_a_transaction_that_stays_open_is_named(
    client: SemelClient, killed: TransactionalProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "_SETTLE_TIMEOUT_S", 0.01)
    with pytest.raises(topics.OpenTransactionError, match="of killed in income-1 from offset 0 on"):
        await topics.read(client, TOPIC)
    await killed.abort()
