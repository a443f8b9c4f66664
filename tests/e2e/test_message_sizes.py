"""Topics and brokers that take small batches only: every way to send cuts larger ones."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from aiosemel import (
    Compression,
    ConsumerOptions,
    OffsetReset,
    ProducerOptions,
    SemelClient,
    TransactionalProducer,
)
from aiosemel.errors import MessageTooLargeError
from semel_local import LocalCluster
from semel_local.layout import Role

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMIT_BYTES = 100_000
VALUES = [b"%01000d" % number for number in range(1_500)]
Send = Callable[[SemelClient, str], Awaitable[None]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def strict() -> AsyncIterator[SemelClient]:
    """A client of a cluster whose broker takes small batches, which no metadata says."""
    settings = {Role.BROKER: {"message_max_bytes": LIMIT_BYTES}}
    async with LocalCluster(settings=settings) as cluster, cluster.client() as client:
        yield client


async def read(client: SemelClient, topic: str, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with client.consumer(options=options) as consumer:
        consumer.assign([(topic, 0)])
        while len(values) < count:
            for records in (await consumer.poll()).values():
                values += [record.value for record in records]
    return values


async def send(client: SemelClient, topic: str) -> None:
    async with client.producer() as producer:
        sent = [await producer.send(topic, value, partition=0) for value in VALUES]
        assert [(await each).offset for each in sent] == [*range(len(VALUES))]


async def send_columns(client: SemelClient, topic: str) -> None:
    async with client.producer() as producer:
        stored = await (await producer.send_columns(topic, VALUES, partition=0))
    assert sum(piece.record_count for piece in stored) == len(VALUES)
    assert [piece.base_offset for piece in stored] == sorted({p.base_offset for p in stored})


async def send_compressed(client: SemelClient, topic: str) -> None:
    async with client.producer(ProducerOptions(compression=Compression.ZSTD)) as producer:
        await (await producer.send_columns(topic, VALUES, partition=0))


async def commit(client: SemelClient, topic: str) -> None:
    async with started(client, topic) as producer:
        await producer.init_transactions()
        async with producer.transaction(wait_until_visible=True) as transaction:
            await transaction.send_columns(topic, VALUES[:1_000], partition=0)
            for value in VALUES[1_000:]:
                await transaction.send(topic, value, partition=0)


def started(client: SemelClient, topic: str) -> TransactionalProducer:
    return client.transactional_producer(f"to-{topic}")


async def join(client: SemelClient, topic: str) -> None:
    joint = client.joint_transaction(f"joint-{topic}", 1, owner="test")
    async with client.join(joint.handle) as writer:
        await writer.send_columns(topic, VALUES, partition=0)
        receipt = await writer.finish()
    await joint.commit([receipt], wait_until_visible=True)


@pytest.mark.parametrize("way", [send, send_columns, send_compressed, commit, join])
@pytest.mark.parametrize("limited_by", ["topic", "broker"])
async def test_every_way_to_send_cuts_batches_to_the_size_that_the_broker_takes(
    way: Send, limited_by: str, client: SemelClient, strict: SemelClient, name: str
) -> None:
    if limited_by == "broker":
        client = strict
        await client.admin().create_topic(name, partitions=1)
    else:
        configs = {"max.message.bytes": str(LIMIT_BYTES)}
        await client.admin().create_topic(name, partitions=1, configs=configs)
    await way(client, name)
    assert await read(client, name, len(VALUES)) == VALUES


async def test_a_record_that_a_broker_does_not_take_costs_no_other(
    strict: SemelClient, name: str
) -> None:
    """No metadata says the limit; the records before and behind are stored."""
    await strict.admin().create_topic(name, partitions=1)
    async with strict.producer() as producer:
        first = await producer.send_columns(name, VALUES[:50], partition=0)
        large = await producer.send(name, bytes(LIMIT_BYTES), partition=0)
        last = await producer.send_columns(name, VALUES[50:100], partition=0)
        message = (
            rf"topic '{name}': a record of 100,0\d\d bytes exceeds max.message.bytes \(100,000\);"
            " raise the topic's limit or send smaller records"
        )
        with pytest.raises(MessageTooLargeError, match=message):
            await large
        await first
        await last
    assert await read(strict, name, 100) == VALUES[:100]


async def test_a_record_that_its_topic_does_not_take_is_refused_before_it_counts(
    client: SemelClient, name: str
) -> None:
    """The transaction goes on; and a limit that was raised meanwhile is seen at once."""
    admin = client.admin()
    await admin.create_topic(name, partitions=1, configs={"max.message.bytes": "100000"})
    message = rf"topic '{name}': a record of .* bytes exceeds max.message.bytes \(100,000\)"
    async with started(client, name) as producer:
        await producer.init_transactions()
        async with producer.transaction(wait_until_visible=True) as transaction:
            await transaction.send(name, b"before", partition=0)
            with pytest.raises(MessageTooLargeError, match=message):
                await transaction.send(name, bytes(LIMIT_BYTES), partition=0)
            with pytest.raises(MessageTooLargeError, match=message):
                await transaction.send_columns(name, [b"no", bytes(LIMIT_BYTES)], partition=0)
            with pytest.raises(MessageTooLargeError, match=r"append of 2 records of .* fewer"):
                await transaction.append(
                    name, [b"no", bytes(LIMIT_BYTES)], partition=0, expected_base_offset=1
                )
            await admin.incremental_alter_configs(name, set_configs={"max.message.bytes": 200_000})
            await transaction.send(name, bytes(LIMIT_BYTES), partition=0)
    assert await read(client, name, 2) == [b"before", bytes(LIMIT_BYTES)]


async def test_a_record_is_measured_as_it_is_sent(client: SemelClient, name: str) -> None:
    """Compressed it fits."""
    configs = {"max.message.bytes": "1024"}
    await client.admin().create_topic(name, partitions=1, configs=configs)
    async with client.producer(ProducerOptions(compression=Compression.ZSTD)) as producer:
        await producer.send_and_wait(name, bytes(LIMIT_BYTES), partition=0)
    assert await read(client, name, 1) == [bytes(LIMIT_BYTES)]
