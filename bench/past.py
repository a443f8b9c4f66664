"""What lies behind a partition, or stands open in a broker, must cost those who go on nothing."""

import asyncio
import itertools
import time

from aiosemel import Producer, SemelClient, ServiceRole, TopicPartition
from bench.measure import Figure, percentile
from bench.topics import fresh_topic
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_common.batches import Columns, seal
from semel_common.wire import methods
from semel_common.wire.connection import Connection
from semel_common.wire.grpc_connection import GrpcConnector

OPEN = 10_000
ABORTED = 100_000
PRODUCERS = 500
"""So many abort at the same time; each has one epoch after the other."""
IN_REQUEST = 500
RECORDS = 400_000
COLUMN = [bytes(100)] * 5_000
PRODUCES = 1_000
TIMEOUT_MS = 60_000
_ONE = Columns(values=[b"x"], keys=None, timestamps_ms=[0], headers={})


async def past(bootstrap: str) -> list[Figure]:
    """Measure with and without: produce next to open, and reads after aborted transactions."""
    connector = GrpcConnector()
    async with SemelClient(bootstrap) as client:
        wire = await _Wire.find(client, connector, bootstrap)
        figures = [*await _produces(client, wire), *await _reads(client, wire)]
    await connector.close()
    return figures


class _Wire:
    """Calls without the SDK, which has no use for producers by the ten thousand."""

    def __init__(self, coordinator: Connection, leader: Connection, cluster_id: str) -> None:
        self._coordinator = coordinator
        self._leader = leader
        self._cluster_id = cluster_id
        self._numbers = itertools.count()

    @classmethod
    async def find(cls, client: SemelClient, connector: GrpcConnector, bootstrap: str) -> "_Wire":
        """Return the wire to a cluster with one broker."""
        cluster = await client.admin().describe_cluster()
        (leader,) = (each for each in cluster.instances if each.role is ServiceRole.BROKER)
        address = f"{leader.host}:{leader.port}"
        return cls(connector.connect(bootstrap), connector.connect(address), cluster.cluster_id)

    async def producer_ids(self, count: int) -> list[int]:
        """Begin with so many transactional ids."""
        requests = [
            transactions.InitProducerIdRequest(
                transactional_id=f"past-{number}",
                instance_id=f"{number}",
                init_number=1,
                transaction_timeout_ms=900_000,
            )
            for number in itertools.islice(self._numbers, count)
        ]
        ids: list[int] = []
        for start in range(0, count, IN_REQUEST):
            calls = (
                self._coordinator.call(methods.INIT_PRODUCER_ID, each, timeout_ms=TIMEOUT_MS)
                for each in requests[start : start + IN_REQUEST]
            )
            ids += [response.producer_id for response in await asyncio.gather(*calls)]
        return ids

    async def open(self, topic: str, producer_ids: list[int], epoch: int) -> None:
        """Write one record in a transaction of each producer."""
        for start in range(0, len(producer_ids), IN_REQUEST):
            request = broker.ProduceRequest()
            partition = request.partitions.add(topic=topic)
            for producer_id in producer_ids[start : start + IN_REQUEST]:
                seal(
                    _ONE,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    base_sequence=0,
                    transactional=True,
                    into=partition.batches.add(),
                )
            response = await self._leader.call(methods.PRODUCE, request, timeout_ms=TIMEOUT_MS)
            assert not response.partitions[0].HasField("error"), response.partitions[0].error

    async def abort(self, topic_id: str, producer_ids: list[int], epoch: int) -> None:
        """Write the ABORT marker of each producer's transaction."""
        where = participants.Participants()
        where.topics.add(topic_id=topic_id, partitions=[0])
        request = participants.WriteTxnMarkersRequest(cluster_id=self._cluster_id)
        for producer_id in producer_ids:
            request.markers.add(
                producer_id=producer_id,
                producer_epoch=epoch,
                result=participants.TRANSACTION_RESULT_ABORT,
                coordinator_epoch=1,
                participants=where,
            )
        method = methods.BROKER_WRITE_TXN_MARKERS
        response = await self._leader.call(method, request, timeout_ms=TIMEOUT_MS)
        assert not any(result.errors for result in response.results)


async def _produces(client: SemelClient, wire: _Wire) -> list[Figure]:
    """Compare the time of one send before and after many transactions are open."""
    topic, other = await fresh_topic(client, 1), await fresh_topic(client, 1)
    async with client.producer() as producer:
        await _send_all(producer, topic)
        before = await _send_all(producer, topic)
        await wire.open(other, await wire.producer_ids(OPEN), 0)
        after = await _send_all(producer, topic)
    return [
        Figure(name="produce p50", value=before, unit="ms"),
        Figure(name=f"… with {OPEN:,} open transactions", value=after, unit="ms"),
        Figure(name="… against without", value=after / before, unit="times", goal="1"),
    ]


async def _send_all(producer: Producer, topic: str) -> float:
    """Send records one after the other; returns the median in milliseconds."""
    took = []
    for _ in range(PRODUCES):
        started = time.perf_counter()
        await producer.send_and_wait(topic, b"x")
        took.append((time.perf_counter() - started) * 1_000)
    return percentile(took, 0.5)


async def _reads(client: SemelClient, wire: _Wire) -> list[Figure]:
    """Compare reading a partition with reading one that begins with many aborted transactions."""
    clean, littered = await fresh_topic(client, 1), await fresh_topic(client, 1)
    topic_id = (await client.admin().describe_topic(littered)).topic_id
    producer_ids = await wire.producer_ids(PRODUCERS)
    for epoch in range(ABORTED // PRODUCERS):
        await wire.open(littered, producer_ids, epoch)
        await wire.abort(topic_id, producer_ids, epoch)
    async with client.producer() as producer:
        for _ in range(RECORDS // len(COLUMN)):
            for topic in (clean, littered):
                await producer.send_columns(topic, COLUMN, partition=0)
        await producer.flush()
    await _poll(client, clean, 0)
    without = await _poll(client, clean, 0)
    behind = await _poll(client, littered, 2 * ABORTED)
    return [
        Figure(name="column poll of one partition", value=without, unit="records/s"),
        Figure(name=f"… after {ABORTED:,} aborted", value=behind, unit="records/s"),
        Figure(name="… against without", value=behind / without, unit="times", goal="1"),
    ]


async def _poll(client: SemelClient, topic: str, offset: int) -> float:
    """Read all records from an offset on; returns the rate."""
    async with client.consumer() as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), offset)
        started, seen = time.perf_counter(), 0
        while seen < RECORDS:
            polled = await consumer.poll_columns(timeout_ms=10_000)
            seen += sum(len(batch) for batches in polled.values() for batch in batches)
        return seen / (time.perf_counter() - started)
