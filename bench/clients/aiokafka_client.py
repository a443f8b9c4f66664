"""aiokafka: Kafka's client for asyncio. A producer of its own for each transactional id."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import assert_never

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError

from bench.clients.messages import Order
from bench.clients.meter import Meter
from bench.clients.settings import POLL_RECORDS
from bench.workloads import Call, Kind, Sample, Workload

_POLL_TIMEOUT_MS = 500

# A topic that has just been created has no leader yet: it warns of each retry.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


def run(bootstrap: str, order: Order, meter: Meter) -> Sample:
    """Do one task with producers and consumers of its own."""
    uvloop.run(_Client(bootstrap, order, meter).run())
    return meter.sample()


@dataclass(frozen=True, slots=True)
class _Client:
    bootstrap: str
    order: Order
    meter: Meter

    @property
    def workload(self) -> Workload:
        return self.order.task.workload

    @property
    def topic(self) -> str:
        return self.order.task.name

    async def run(self) -> None:
        if self.workload.kind is not Kind.CONSUME:
            await self._create_topic()
        match self.workload.kind:
            case Kind.TRANSACTIONS:
                await self._transactions()
            case Kind.VISIBLE:
                await self._visible()
            case Kind.TRANSFORM:
                await self._transform()
            case Kind.BULK:
                await self._bulk()
            case Kind.CONSUME:
                await self._consume()
            case unknown:
                assert_never(unknown)

    async def _transactions(self) -> None:
        async def work(producer: AIOKafkaProducer) -> None:
            while not self.meter.over:
                took_ms = await self._transaction(producer)
                self.meter.ended(self.workload.records_per_transaction, took_ms)

        async with AsyncExitStack() as stack:
            made = [
                await stack.enter_async_context(self._producer(number))
                for number in range(self.workload.producers)
            ]
            async with asyncio.TaskGroup() as group:
                for producer in made:
                    group.create_task(work(producer))

    async def _transaction(self, producer: AIOKafkaProducer) -> float:
        """Return how long the commit took, in milliseconds."""
        value = bytes(self.workload.record_size_bytes)
        await producer.begin_transaction()
        for number in range(self.workload.records_per_transaction):
            await producer.send(self.topic, value, partition=number % self.workload.partitions)
        started = time.perf_counter()
        await producer.commit_transaction()
        return (time.perf_counter() - started) * 1_000

    async def _visible(self) -> None:
        arrived: asyncio.Queue[float] = asyncio.Queue()
        async with self._producer(0) as producer, self._consumer() as consumer:
            consumer.assign(self._partitions(self.topic))
            async with asyncio.TaskGroup() as group:
                polling = group.create_task(_poll(consumer, arrived))
                while not self.meter.over:
                    started = ended = time.perf_counter()
                    await self._transaction(producer)
                    for _ in range(self.workload.records_per_transaction):
                        ended = await arrived.get()
                    count = self.workload.records_per_transaction
                    self.meter.ended(count, (ended - started) * 1_000)
                polling.cancel()

    async def _transform(self) -> None:
        async with self._producer(0) as producer, self._consumer(self.topic) as consumer:
            consumer.subscribe([self.order.task.source])
            while not self.meter.over:
                polled = await consumer.getmany(
                    timeout_ms=_POLL_TIMEOUT_MS, max_records=self.workload.records_per_transaction
                )
                if not polled:
                    continue
                await producer.begin_transaction()
                for held, records in polled.items():
                    for record in records:
                        await producer.send(self.topic, record.value, partition=held.partition)
                ends = {held: records[-1].offset + 1 for held, records in polled.items()}
                await producer.send_offsets_to_transaction(ends, self.topic)
                await producer.commit_transaction()
                self.meter.ended(sum(map(len, polled.values())))

    async def _bulk(self) -> None:
        columns = self.workload.call is Call.COLUMNS
        send = self._send_batches if columns else self._send_records
        async with self._producer(0) as producer:
            while not self.meter.over:
                await producer.begin_transaction()
                await send(producer)
                await producer.commit_transaction()
                self.meter.ended(self.workload.records_per_transaction)

    async def _send_records(self, producer: AIOKafkaProducer) -> None:
        value = bytes(self.workload.record_size_bytes)
        for number in range(self.workload.records_per_transaction):
            await producer.send(self.topic, value, partition=number % self.workload.partitions)

    async def _send_batches(self, producer: AIOKafkaProducer) -> None:
        """Fill a batch for one partition after the other, which spares most of the awaits."""
        value = bytes(self.workload.record_size_bytes)
        left, partition = self.workload.records_per_transaction, 0
        while left:
            batch = producer.create_batch()
            while left and batch.append(timestamp=None, key=None, value=value) is not None:
                left -= 1
            await producer.send_batch(batch, self.topic, partition=partition)
            partition = (partition + 1) % self.workload.partitions

    async def _consume(self) -> None:
        source = self.order.task.source
        async with self._consumer() as consumer:
            consumer.assign(self._partitions(source))
            while not self.meter.over:
                polled = await consumer.getmany(
                    timeout_ms=_POLL_TIMEOUT_MS, max_records=POLL_RECORDS
                )
                if polled:
                    self.meter.ended(sum(map(len, polled.values())))

    @asynccontextmanager
    async def _producer(self, number: int) -> AsyncIterator[AIOKafkaProducer]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=f"{self.topic}-{number}",
            **self.order.settings.producer,
        )
        await producer.start()
        try:
            yield producer
        finally:
            await producer.stop()

    @asynccontextmanager
    async def _consumer(self, group_id: str | None = None) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=group_id, **self.order.settings.consumer
        )
        await consumer.start()
        try:
            yield consumer
        finally:
            await consumer.stop()

    def _partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, index) for index in range(self.workload.partitions)]

    async def _create_topic(self) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(self.topic, self.workload.partitions, 1)])
        except TopicAlreadyExistsError:
            pass
        finally:
            await admin.close()


async def _poll(consumer: AIOKafkaConsumer, arrived: asyncio.Queue[float]) -> None:
    """Say when each record has arrived."""
    while True:
        polled = await consumer.getmany(timeout_ms=_POLL_TIMEOUT_MS)
        now = time.perf_counter()
        for records in polled.values():
            for _ in records:
                arrived.put_nowait(now)
