"""Stores a batch as a client without the SDK sends it."""

import asyncio

from aiosemel import SemelClient
from aiosemel._cluster.retry import Deadline
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import RecordBatch
from semel_common.ids import TopicPartition
from semel_common.wire.methods import PRODUCE


def produce_raw(bootstrap: str, topic: str, batch: RecordBatch, partition: int = 0) -> None:
    """Store a batch in one partition of a topic."""
    asyncio.run(_produce(bootstrap, topic, batch, partition))


async def _produce(bootstrap: str, topic: str, batch: RecordBatch, partition: int) -> None:
    request = broker.ProduceRequest(
        partitions=[broker.ProducePartition(topic=topic, partition=partition, batches=[batch])]
    )
    async with SemelClient(bootstrap) as client:
        deadline = Deadline.after_ms(10_000)
        cluster = client._context.cluster
        described = await cluster.cache.topic(topic, deadline)
        address = cluster.leader_address(TopicPartition(described.topic_id, partition))
        response = await cluster.attempt_at(address, PRODUCE, request, deadline=deadline)
    assert not response.partitions[0].HasField("error"), response
