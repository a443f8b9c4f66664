"""The description of a partition's producers, page by page."""

from aiosemel._answers.refusals import raise_refusal
from aiosemel._cluster.pages import pages
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.types.offsets import TopicPartition
from aiosemel.types.open_transactions import OpenEpoch, PartitionProducers, ProducerDescription
from semel.broker.v1 import producers_pb2 as producers
from semel.common.v1 import participants_pb2 as participants
from semel_common import ids
from semel_common.wire import methods
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
        return await cluster.call(
            route,
            methods.DESCRIBE_PRODUCERS,
            request,
            deadline=deadline,
            check=lambda answer: raise_refusal(answer.partitions),
        )

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


def _producer(answer: producers.ProducerDescription) -> ProducerDescription:
    return ProducerDescription(
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch if answer.producer_epoch >= 0 else None,
        last_sequence=answer.last_sequence if answer.last_sequence >= 0 else None,
        last_timestamp_ms=answer.last_timestamp_ms,
        fence=answer.fence,
        open_transactions=tuple(map(_OPEN_EPOCH.read, answer.open_transactions)),
    )
