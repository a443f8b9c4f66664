"""Appends at one offset or not at all."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from network_faults import Hold, LoseReply, LoseRequest
from producer_harness import QUICK, FakeCluster, begun, elapse, open_client

from aiosemel import ColumnsMetadata, Producer, ProducerOptions
from aiosemel.errors import (
    BaseOffsetMismatchError,
    IllegalStateError,
    InvalidRequestError,
    MessageTooLargeError,
    RequestTimedOutError,
    TransactionAbortedError,
    UnknownTopicOrPartitionError,
)
from semel.broker.v1.broker_pb2 import ProduceRequest
from semel_common.record_batches.batches import decode_records


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create_topic("t", partitions=2)
    return cluster


async def test_an_append_at_the_end_says_where_it_is(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"0", partition=1)
        stored = await producer.append("t", [b"1", b"2"], partition=1, expected_base_offset=1)
        assert stored == ColumnsMetadata(topic="t", partition=1, base_offset=1, record_count=2)
    request = fake.asked(ProduceRequest)[-1]
    assert request.partitions[0].expected_base_offset == 1
    assert not fake.asked(ProduceRequest)[0].partitions[0].HasField("expected_base_offset")


async def test_an_append_elsewhere_stores_nothing_and_the_producer_goes_on(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"0", partition=0)
        for _ in range(3):
            with pytest.raises(BaseOffsetMismatchError) as caught:
                await producer.append("t", [b"no"], partition=0, expected_base_offset=0)
            assert caught.value.log_end_offset == 1
        await producer.append("t", [b"1"], partition=0, expected_base_offset=1)
        await producer.send_and_wait("t", b"2", partition=0)
    assert fake.stored("t", 0) == [b"0", b"1", b"2"]


async def test_keys_headers_and_time_arrive(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        await client.producer().append(
            "t",
            [b"1", None],
            partition=0,
            expected_base_offset=0,
            keys=[b"k", None],
            headers=[(), [("h", b"x")]],
            timestamps_ms=[77, 78],
        )
    columns = decode_records(fake.log("t", 0).batches[0])
    assert (columns.values, columns.keys) == ([b"1", None], [b"k", None])
    assert dict(columns.headers) == {1: (("h", b"x"),)}
    assert list(columns.timestamps_ms) == [77, 78]


@pytest.mark.parametrize("batch_size_bytes", [32, 65_536])
async def test_it_is_in_flight_alone_and_in_its_place(
    fake: FakeCluster, batch_size_bytes: int
) -> None:
    released = asyncio.Event()
    fake.then("Produce", Hold(released))
    options = ProducerOptions(batch_size_bytes=batch_size_bytes)
    async with open_client(fake) as client:
        producer = client.producer(options)
        before = [await producer.send("t", b"a%d" % n, partition=0) for n in range(3)]
        append = asyncio.create_task(
            producer.append("t", [b"b"], partition=0, expected_base_offset=3)
        )
        await elapse(0.02)
        after = [await producer.send("t", b"c%d" % n, partition=0) for n in range(3)]
        await elapse(0.02)
        released.set()
        assert (await append).base_offset == 3
        for delivery in (*before, *after):
            await delivery
    assert fake.stored("t", 0) == [b"a0", b"a1", b"a2", b"b", b"c0", b"c1", b"c2"]
    sent = [part for request in fake.asked(ProduceRequest) for part in request.partitions]
    (alone,) = [part for part in sent if part.HasField("expected_base_offset")]
    assert decode_records(alone.batches[0]).values == [b"b"]


@pytest.mark.parametrize("fault", [LoseReply(), LoseRequest()])
async def test_what_is_lost_is_sent_again_and_known_as_a_repeat(
    fake: FakeCluster, fault: LoseReply | LoseRequest
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.append("t", [b"0"], partition=0, expected_base_offset=0)
        fake.then("Produce", fault)
        await producer.append("t", [b"1"], partition=0, expected_base_offset=1)
    assert fake.stored("t", 0) == [b"0", b"1"]


async def test_without_an_answer_it_is_not_known(fake: FakeCluster) -> None:
    fake.then("Produce", *[LoseReply()] * 50)
    async with open_client(fake) as client:
        producer = client.producer(QUICK)
        with pytest.raises(RequestTimedOutError):
            await producer.append("t", [b"0"], partition=0, expected_base_offset=0)
    assert fake.stored("t", 0) == [b"0"]


async def test_a_transaction_that_lost_the_race_can_only_be_aborted(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        await client.producer().send_and_wait("t", b"first", partition=0)
        producer = await begun(client)
        with pytest.raises(BaseOffsetMismatchError):
            await producer.append("t", [b"late"], partition=0, expected_base_offset=0)
        with pytest.raises(TransactionAbortedError):
            await producer.commit()
        await producer.abort()
        async with producer.transaction() as transaction:
            await transaction.append("t", [b"then"], partition=0, expected_base_offset=1)
        with pytest.raises(IllegalStateError):
            await transaction.append("t", [b"x"], partition=0, expected_base_offset=2)
        with pytest.raises(IllegalStateError):
            await producer.append("t", [b"x"], partition=0, expected_base_offset=2)
    assert fake.visible("t", 0) == [b"first", b"then"]


Append = Callable[[Producer], Awaitable[object]]


@pytest.mark.parametrize(
    ("append", "error", "words"),
    [
        (
            lambda p: p.append("t", [], partition=0, expected_base_offset=0),
            *(InvalidRequestError, "nothing to append"),
        ),
        (
            lambda p: p.append("t", [b"v"], partition=0, expected_base_offset=-1),
            *(InvalidRequestError, "expected_base_offset is -1"),
        ),
        (
            lambda p: p.append("t", [b"v"], partition=0, expected_base_offset=0, keys=[]),
            *(InvalidRequestError, "1 values have 0 keys"),
        ),
        (
            lambda p: p.append("t", [b"v"], partition=0, expected_base_offset=0, headers=[(), ()]),
            *(InvalidRequestError, "1 values have 2 headers"),
        ),
        (
            lambda p: p.append(
                "t", [b"v"], partition=0, expected_base_offset=0, timestamps_ms=[-1]
            ),
            *(InvalidRequestError, "timestamp_ms"),
        ),
        (
            lambda p: p.append("t", ["v"], partition=0, expected_base_offset=0),
            *(TypeError, "bytes"),
        ),
        (
            lambda p: p.append("t", [bytes(2_000_000)], partition=0, expected_base_offset=0),
            *(MessageTooLargeError, "max_request_size_bytes"),
        ),
        (
            lambda p: p.append("t", [b"v"], partition=9, expected_base_offset=0),
            *(UnknownTopicOrPartitionError, "no partition 9"),
        ),
    ],
)
async def test_what_cannot_be_is_refused_at_once(
    fake: FakeCluster, append: Append, error: type[Exception], words: str
) -> None:
    async with open_client(fake) as client:
        with pytest.raises(error, match=words):
            await append(client.producer())
    assert not fake.asked(ProduceRequest)
