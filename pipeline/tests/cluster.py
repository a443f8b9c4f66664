"""A cluster of real services for tests that do not await: Spark's calls block."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

from aiosemel import ColumnBatch, ConsumerOptions, IsolationLevel, OffsetReset, SemelClient
from semel_local import ProcessCluster

_T = TypeVar("_T")


class Cluster:
    """Services as processes, and a client of them, in a loop of their own thread."""

    def __init__(self, processes: ProcessCluster, loop: asyncio.AbstractEventLoop) -> None:
        self.processes = processes
        self.client = SemelClient(processes.bootstrap, security=processes.security)
        self._loop = loop
        self._numbers = count()

    @property
    def bootstrap(self) -> str:
        """The address for the option ``bootstrap.servers``."""
        return self.processes.bootstrap

    def call(self, coroutine: Coroutine[object, object, _T]) -> _T:
        """Run this in the cluster's loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def topic(self, partitions: int = 1, name: str = "topic") -> str:
        """Create a topic with a name that no other test has."""
        topic = f"{name}-{next(self._numbers)}"
        self.call(self.client.admin().create_topic(topic, partitions=partitions))
        return topic

    def send(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        partition: int | None = None,
    ) -> None:
        """Store records, without a transaction."""

        async def send() -> None:
            producer = self.client.producer()
            await (await producer.send_columns(topic, values, keys=keys, partition=partition))
            await producer.close()

        self.call(send())

    def read(
        self, topic: str, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> list[ColumnBatch]:
        """Return all that a topic holds up to its end of now, by partition and offset."""
        return self.call(self._read(topic, isolation))

    def values(
        self, topic: str, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> list[bytes | None]:
        """Return all values of a topic."""
        return [value for batch in self.read(topic, isolation) for value in batch.values]

    async def _read(self, topic: str, isolation: IsolationLevel) -> list[ColumnBatch]:
        options = ConsumerOptions(isolation_level=isolation, auto_offset_reset=OffsetReset.EARLIEST)
        described = await self.client.admin().describe_topic(topic)
        consumer = self.client.consumer(options=options)
        partitions = [(topic, each.partition) for each in described.partitions]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        found: list[ColumnBatch] = []
        for partition, end in ends.items():
            while await consumer.position(partition) < end:
                polled = await consumer.poll_columns()
                found += [batch for batches in polled.values() for batch in batches]
        await consumer.close()
        return sorted(found, key=lambda batch: (batch.topic_partition, batch.offsets[0]))


@contextmanager
def cluster(folder: Path, *, brokers: int = 2, tls: bool = False) -> Iterator[Cluster]:
    """Start a cluster in a folder; its services are processes. ``tls``: it wants certificates."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="cluster")
    thread.start()
    processes = ProcessCluster(folder, brokers=brokers, tls=tls)

    def call(coroutine: Coroutine[object, object, object]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    try:
        call(processes.__aenter__())
        try:
            made = Cluster(processes, loop)
            call(made.client.open())
            try:
                yield made
            finally:
                call(made.client.close())
        finally:
            call(processes.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
