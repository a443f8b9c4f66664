"""DescribeProducers and ListOpenTransactions over the wire: what operators are shown."""

import pytest
from broker_harness import ORDERS, OTHER, PRODUCER
from broker_service import COMMIT, Broker, batch

from semel.broker.v1 import producers_pb2 as wire
from semel.common.v1 import participants_pb2 as participants
from semel_common.error_codes import ErrorCode
from semel_common.errors import InvalidRequestError
from semel_common.wire.methods import DESCRIBE_PRODUCERS, LIST_OPEN_TRANSACTIONS


def at(partition: int, topic_id: str = ORDERS) -> participants.TopicPartition:
    return participants.TopicPartition(topic_id=topic_id, partition=partition)


async def listed(broker: Broker, **fields: int) -> participants.ListOpenTransactionsResponse:
    request = participants.ListOpenTransactionsRequest(**fields)
    return await broker.call(LIST_OPEN_TRANSACTIONS, request)


async def test_producers_are_described_with_what_they_hold_open(broker: Broker) -> None:
    await broker.produce(batch(b"one", b"two"))
    request = wire.DescribeProducersRequest(partitions=[at(0), at(7)])
    described, unknown = (await broker.call(DESCRIBE_PRODUCERS, request)).partitions
    assert (described.last_stable_offset, described.high_watermark) == (0, 2)
    (producer,) = described.producers
    assert (producer.producer_id, producer.producer_epoch) == (PRODUCER, 0)
    assert (producer.last_sequence, producer.fence) == (1, 0)
    assert [each.first_offset for each in producer.open_transactions] == [0]
    assert unknown.error.code == int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_a_producer_that_only_a_marker_named_has_written_nothing(broker: Broker) -> None:
    await broker.end(COMMIT, partitions=[0])
    request = wire.DescribeProducersRequest(partitions=[at(0)], limit=1)
    (described,) = (await broker.call(DESCRIBE_PRODUCERS, request)).partitions
    (producer,) = described.producers
    assert (producer.producer_epoch, producer.last_sequence, producer.fence) == (-1, -1, 1)
    assert not producer.open_transactions


async def test_open_transactions_are_listed_and_cut(broker: Broker) -> None:
    await broker.produce(batch(b"one"))
    await broker.produce(batch(b"two", producer_id=OTHER), partition=1)
    response = await listed(broker)
    assert [each.participant.topic_partition for each in response.transactions] == [at(0), at(1)]
    assert not response.truncated
    first = await listed(broker, limit=1)
    assert (list(first.transactions), first.truncated) == ([response.transactions[0]], True)
    assert not (await listed(broker, open_longer_than_ms=60_000)).transactions


@pytest.mark.parametrize("fields", [{"limit": -1}, {"limit": 10_001}, {"open_longer_than_ms": -1}])
async def test_a_list_that_cannot_be_is_refused(broker: Broker, fields: dict[str, int]) -> None:
    with pytest.raises(InvalidRequestError):
        await listed(broker, **fields)


@pytest.mark.parametrize(
    "request_",
    [
        wire.DescribeProducersRequest(),
        wire.DescribeProducersRequest(partitions=[at(0)] * 101),
        wire.DescribeProducersRequest(partitions=[at(-1)]),
        wire.DescribeProducersRequest(partitions=[at(0, "")]),
        wire.DescribeProducersRequest(partitions=[at(0)], limit=1_001),
    ],
    ids=["none", "too many", "negative", "nameless", "over the limit"],
)
async def test_partitions_that_cannot_be_are_refused(
    broker: Broker, request_: wire.DescribeProducersRequest
) -> None:
    with pytest.raises(InvalidRequestError):
        await broker.call(DESCRIBE_PRODUCERS, request_)
