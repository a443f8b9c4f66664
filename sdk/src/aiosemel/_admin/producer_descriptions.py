"""The description of a partition's producers, page by page."""

from aiosemel._cluster.pages import pages
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster, Route
from aiosemel.errors import RefreshRetriableError
from aiosemel.types.offsets import TopicPartition
from aiosemel.types.open_transactions import OpenEpoch, PartitionProducers, ProducerDescription
from semel.broker.v1 import producers_pb2 as producers
from semel.common.v1 import participants_pb2 as participants
from semel_common import ids
from semel_common.wire import methods, status
from semel_common.wire.messages.plain_messages import PlainMessage

_OPEN_EPOCH = PlainMessage(OpenEpoch, producers.OpenTransactionOfProducer)


async def describe_producers(
    cluster: Cluster, partition: TopicPartition, limit: int | None, deadline: Deadline
) -> PartitionProducers:
    """Return a partition's producers, ``limit`` at most; None: all of them.

    Raises UnknownTopicOrPartitionError.
    """
    topic = await cluster.cache.topic(partition.topic, deadline)
    named = participants.TopicPartition(topic_id=topic.topic_id, partition=partition.partition)
    route = cluster.leader_of(ids.TopicPartition(topic.topic_id, partition.partition))

    async def ask(token: str) -> producers.DescribeProducersResponse:
        request = producers.DescribeProducersRequest(
            partitions=[named], limit=limit or 0, paged=limit is None, page_token=token
        )
        return await _described(cluster, route, request, deadline)

    found: list[ProducerDescription] = []
    described = producers.PartitionProducers()
    async for page in pages(ask):
        (described,) = page.partitions
        found += map(_producer, described.producers)
    return PartitionProducers(
        partition=partition,
        high_watermark=described.high_watermark,
        last_stable_offset=described.last_stable_offset,
        producers=tuple(found),
        producer_count=described.producer_count,
    )


async def _described(
    cluster: Cluster,
    route: Route,
    request: producers.DescribeProducersRequest,
    deadline: Deadline,
) -> producers.DescribeProducersResponse:
    """Ask until the leader describes the partition, or rejects the question for good."""
    response = producers.DescribeProducersResponse()

    async def attempt() -> None:
        nonlocal response
        response = await cluster.call(route, methods.DESCRIBE_PRODUCERS, request, deadline=deadline)
        (described,) = response.partitions
        if described.HasField("error"):
            error = status.from_value(described.error)
            if isinstance(error, RefreshRetriableError):
                await cluster.cache.refresh(deadline)
            raise error

    await cluster.insist(attempt, deadline=deadline)
    return response


def _producer(answer: producers.ProducerDescription) -> ProducerDescription:
    return ProducerDescription(
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch if answer.producer_epoch >= 0 else None,
        last_sequence=answer.last_sequence if answer.last_sequence >= 0 else None,
        last_timestamp_ms=answer.last_timestamp_ms,
        fence=answer.fence,
        open_transactions=tuple(map(_OPEN_EPOCH.read, answer.open_transactions)),
    )
