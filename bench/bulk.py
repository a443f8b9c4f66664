"""Bulk: many records of 100 bytes, by columns and one by one, and read back."""

import time

from aiosemel import SemelClient, TopicPartition
from bench.measure import Figure
from bench.topics import fresh_topic

PARTITIONS = 4
VALUE = bytes(100)
COLUMN = [VALUE] * 5_000


async def columns(bootstrap: str, *, records: int = 1_000_000) -> list[Figure]:
    """Send columns in transactions of 100,000 records, then poll them as columns."""
    async with SemelClient(bootstrap) as client:
        topic = await fresh_topic(client, PARTITIONS)
        producer = client.transactional_producer("bench-columns")
        await producer.init_transactions()
        started = time.perf_counter()
        for _ in range(records // (20 * len(COLUMN))):
            await producer.begin_transaction()
            for number in range(20):
                await producer.send_columns(topic, COLUMN, partition=number % PARTITIONS)
            await producer.commit()
        sent = records / (time.perf_counter() - started)
        polled = await _poll(client, topic, records)
    return [
        Figure(name="column send in transactions", value=sent, unit="records/s", goal="≥ 400,000"),
        Figure(name="column poll", value=polled, unit="records/s", goal="≥ 1,000,000"),
    ]


async def one_by_one(bootstrap: str, *, records: int = 200_000) -> list[Figure]:
    """Send records one by one in transactions of 10,000."""
    async with SemelClient(bootstrap) as client:
        topic = await fresh_topic(client, PARTITIONS)
        producer = client.transactional_producer("bench-records")
        await producer.init_transactions()
        started = time.perf_counter()
        for _ in range(records // 10_000):
            await producer.begin_transaction()
            for number in range(10_000):
                await producer.send(topic, VALUE, partition=number % PARTITIONS)
            await producer.commit()
        rate = records / (time.perf_counter() - started)
    return [Figure(name="record-by-record send", value=rate, unit="records/s", goal="≥ 120,000")]


async def _poll(client: SemelClient, topic: str, records: int) -> float:
    consumer = client.consumer()
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    started, seen = time.perf_counter(), 0
    while seen < records:
        polled = await consumer.poll_columns(timeout_ms=10_000)
        seen += sum(len(batch) for batches in polled.values() for batch in batches)
    rate = seen / (time.perf_counter() - started)
    await consumer.close()
    return rate
