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
    request = participants.ListOpenTransactionsRequest(**fields)  # type: ignore[arg-type]  # numbers all
    return await broker.call(LIST_OPEN_TRANSACTIONS, request)


async def test_producers_are_described_with_what_they_hold_open(broker: Broker) -> None:
    await broker.produce(batch(b"one", b"two"))
    request = wire.DescribeProducersRequest(partitions=[at(0), at(7)])
    described, unknown = (await broker.call(DESCRIBE_PRODUCERS, request)).partitions
    assert (described.last_stable_offset, described.high_watermark) == (0, 2)
    (producer,) = described.producers
    assert (producer.producer_id, producer.producer_epoch) == (PRODUCER, 0)
    assert (producer.last_sequence, producer.fence) == (1, 0)
    assert [open_transaction.first_offset for open_transaction in producer.open_transactions] == [0]
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
    assert [transaction.participant.topic_partition for transaction in response.transactions] == [
        at(0),
        at(1),
    ]
    assert not response.truncated
    first = await listed(broker, limit=1)
    assert (list(first.transactions), first.truncated) == ([response.transactions[0]], True)
    assert not (await listed(broker, open_longer_than_ms=60_000)).transactions


async def test_open_transactions_come_in_pages_that_list_each_once(broker: Broker) -> None:
    for partition, producer_id in ((0, PRODUCER), (1, OTHER), (1, PRODUCER)):
        await broker.produce(batch(b"one", producer_id=producer_id), partition=partition)
    everything = (await listed(broker)).transactions
    seen: list[participants.OpenTransaction] = []
    token, pages = "", 0
    while token or not pages:
        page = await listed_page(broker, token)
        assert page.truncated == bool(page.next_page_token)
        seen += page.transactions
        token, pages = page.next_page_token, pages + 1
        if pages == 1:
            await broker.end(COMMIT, partitions=[0])  # The first page goes on behind what is gone.
    assert (seen, pages) == (list(everything), 3)


async def listed_page(
    broker: Broker, token: str, limit: int = 1
) -> participants.ListOpenTransactionsResponse:
    request = participants.ListOpenTransactionsRequest(limit=limit, page_token=token)
    return await broker.call(LIST_OPEN_TRANSACTIONS, request)


@pytest.mark.parametrize("token", ["x", "1:2", "1:2:x:y", "1" * 9_000])
async def test_page_that_no_answer_named_is_refused(broker: Broker, token: str) -> None:
    with pytest.raises(InvalidRequestError, match="page_token"):
        await listed_page(broker, token)


async def test_producers_come_in_pages_in_the_order_of_their_ids(broker: Broker) -> None:
    wanted = sorted((PRODUCER, OTHER, OTHER + 1))
    for producer_id in reversed(wanted):
        await broker.produce(batch(b"one", producer_id=producer_id))
    seen: list[int] = []
    request = wire.DescribeProducersRequest(partitions=[at(0)], paged=True, limit=2)
    for _ in range(2):
        page = await broker.call(DESCRIBE_PRODUCERS, request)
        (described,) = page.partitions
        assert (described.partition, described.producer_count) == (at(0), 3)
        seen += [producer.producer_id for producer in described.producers]
        request.page_token = page.next_page_token
    assert (seen, request.page_token) == (wanted, "")
    unpaged = wire.DescribeProducersRequest(partitions=[at(0)])
    assert not (await broker.call(DESCRIBE_PRODUCERS, unpaged)).next_page_token


async def test_page_of_producers_says_why_its_partition_is_not_described(broker: Broker) -> None:
    request = wire.DescribeProducersRequest(partitions=[at(7)], paged=True)
    (refused,) = (await broker.call(DESCRIBE_PRODUCERS, request)).partitions
    assert refused.error.code == int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


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
        wire.DescribeProducersRequest(partitions=[at(0), at(1)], paged=True),
        wire.DescribeProducersRequest(partitions=[at(0)], paged=True, page_token="x"),
        wire.DescribeProducersRequest(partitions=[at(0)], paged=True, page_token="9" * 20),
    ],
    ids=[
        "none",
        "too many",
        "negative",
        "nameless",
        "over the limit",
        "pages of two",
        "no token",
        "no id",
    ],
)
async def test_partitions_that_cannot_be_are_refused(
    broker: Broker, request_: wire.DescribeProducersRequest
) -> None:
    with pytest.raises(InvalidRequestError):
        await broker.call(DESCRIBE_PRODUCERS, request_)
