"""What well-behaved clients do meanwhile: one whose requests are copied, and one left in peace."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiosemel import (
    Consumer,
    ConsumerOptions,
    OffsetReset,
    SemelClient,
    TransactionalProducer,
)
from fuzz.cluster import Cluster

FROM_START = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)


async def ordinary_work(client: SemelClient, name: str) -> None:
    """Use everything once, so that there are valid requests of every kind."""
    admin = client.admin()
    for topic in await admin.list_topics():
        if topic.name != VICTIM:
            await admin.delete_topic(topic.name, missing_ok=True)
    await admin.create_topic(name, partitions=2)
    async with client.producer() as plain:
        await plain.send_and_wait(name, b"plain", key=b"k", headers=[("h", b"v")])
    async with client.transactional_producer(name) as producer:
        await producer.init_transactions()
        await _consume_and_produce(client, producer, name)
        await producer.begin_transaction()
        await producer.send(name, b"to be aborted")
        await producer.abort()
        await admin.describe_transactions(name)
        await admin.get_transaction_outcome(name, 1)
    await admin.list_transactions()
    await admin.list_groups()
    await admin.describe_group(name)
    await admin.list_consumer_group_offsets(name)
    await admin.describe_configs(name)
    await admin.incremental_alter_configs(name, set_configs={"retention.ms": "86400000"})
    await admin.describe_cluster()


async def _consume_and_produce(
    client: SemelClient, producer: TransactionalProducer, name: str
) -> None:
    async with client.consumer(name, FROM_START) as consumer:
        consumer.subscribe([name])
        while not await consumer.poll(timeout_ms=1_000):
            pass
        for _ in range(3):
            async with producer.transaction(wait_until_visible=True):
                await producer.send(name, b"in a transaction", partition=1)
                await producer.send_offsets(consumer.positions(), consumer.group_metadata())
        await consumer.commit()
        await consumer.end_offsets([(name, 0)])
        await consumer.offsets_for_times({(name, 0): 0})


class Victim:
    """Does a transaction now and then, and reads what it wrote."""

    def __init__(self, producer: TransactionalProducer, consumer: Consumer) -> None:
        self._producer = producer
        self._consumer = consumer
        self._done = 0

    async def go_on(self) -> None:
        """Do one more; an AssertionError, or an error of the client, if that does not work."""
        self._done += 1
        value = f"{self._done}".encode()
        async with self._producer.transaction(wait_until_visible=True):
            await self._producer.send(VICTIM, value)
        records = await self._consumer.poll(timeout_ms=10_000)
        assert [record.value for each in records.values() for record in each] == [value]


VICTIM = "victim"


@asynccontextmanager
async def victim_of(cluster: Cluster) -> AsyncIterator[Victim]:
    """Make a client with topic and transactional id of its own."""
    cluster.keeping = False
    async with cluster.client() as client:
        await client.admin().create_topic(VICTIM, partitions=1)
        producer = client.transactional_producer(VICTIM)
        await producer.init_transactions()
        consumer = client.consumer(options=FROM_START)
        consumer.assign([(VICTIM, 0)])
        cluster.keeping = True
        yield Victim(producer, consumer)
