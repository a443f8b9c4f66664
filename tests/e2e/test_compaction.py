"""A table in a compacted topic: written in transactions, compacted on disk, read over the gaps."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from aiosemel import (
    Consumer,
    ConsumerOptions,
    IsolationLevel,
    OffsetReset,
    OffsetSpec,
    SemelClient,
    TopicPartition,
)
from aiosemel.errors import InvalidRecordError
from semel_local import LocalCluster
from semel_local.layout import Role

pytestmark = pytest.mark.asyncio(loop_scope="session")

TABLE = "prices"
PARTITION = TopicPartition(TABLE, 0)
KEYS = 40
ROUNDS = 6
FILLING = b"." * 1_000
"""Makes batches so large that they are opened beside the event loop."""


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(tmp_path: Path) -> AsyncIterator[LocalCluster]:
    """A small cluster on disk, whose broker looks for dirty logs all the time."""
    settings = {Role.BROKER: {"log_cleaner_backoff_ms": 10}}
    async with LocalCluster(folder=tmp_path, settings=settings) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def client(cluster: LocalCluster) -> AsyncIterator[SemelClient]:
    async with cluster.client() as client:
        options = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
        await client.admin().create_topic(TABLE, partitions=1, configs=options)
        yield client


def reader(client: SemelClient, isolation: IsolationLevel) -> Consumer:
    options = ConsumerOptions(
        isolation_level=isolation,
        auto_offset_reset=OffsetReset.EARLIEST,
        fetch_max_wait_ms=20,
        max_partition_fetch_bytes=20_000,
    )
    return client.consumer(options=options)


async def write(client: SemelClient) -> dict[bytes, bytes]:
    """Write every key again and again, every third time in a transaction that aborts."""
    table: dict[bytes, bytes] = {}
    producer = client.transactional_producer("writer")
    await producer.init_transactions()
    for number in range(ROUNDS):
        values = {b"%d" % key: b"%d of %d" % (key, number) + FILLING for key in range(KEYS)}
        await producer.begin_transaction()
        for key, value in values.items():
            await producer.send(TABLE, value, key=key)
        if number % 3 == 2:
            await producer.abort()
        else:
            await producer.commit(wait_until_visible=True)
            table |= values
    await producer.close()
    return table


async def read_to(consumer: Consumer, end: int, table: dict[bytes, bytes]) -> list[int]:
    """Read up to an offset; put the records into a table, and return their offsets."""
    offsets: list[int] = []
    while await consumer.position(PARTITION) < end:
        for records in (await consumer.poll(timeout_ms=100)).values():
            offsets += [record.offset for record in records]
            table |= {record.key or b"": record.value or b"" for record in records}
    return offsets


async def end_offset(client: SemelClient) -> int:
    found = (await client.admin().list_offsets({PARTITION: OffsetSpec.LATEST}))[PARTITION]
    assert found is not None
    return found.offset


async def test_a_table_is_the_same_for_readers_before_during_and_after_compaction(
    client: SemelClient,
) -> None:
    before: dict[bytes, bytes] = {}
    async with reader(client, IsolationLevel.READ_COMMITTED) as early, asyncio.timeout(30):
        early.assign([PARTITION])
        writing = asyncio.create_task(write(client), name="writer")
        for _ in range(3):
            for records in (await early.poll(timeout_ms=50)).values():
                before |= {record.key or b"": record.value or b"" for record in records}
        table = await writing
        end = await end_offset(client)
        await read_to(early, end, before)
        assert before == table

    for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
        offsets: list[int] = []
        after: dict[bytes, bytes] = {}
        async with asyncio.timeout(30):
            while len(offsets) != KEYS:
                async with reader(client, isolation) as late:
                    late.assign([PARTITION])
                    after.clear()
                    offsets = await read_to(late, end, after)
        assert after == table
        assert offsets == sorted(offsets)


async def test_a_record_without_a_key_is_refused_in_words(client: SemelClient) -> None:
    async with client.producer() as producer:
        delivery = await producer.send(TABLE, b"value")
        with pytest.raises(InvalidRecordError, match="has no key, and the topic is compacted"):
            await delivery
