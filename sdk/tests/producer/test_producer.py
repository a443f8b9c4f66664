"""The producer without transactions: where records go, batches, columns."""

import asyncio

import pytest
from producer_harness import (
    FakeCluster,
    elapse,
    open_client,
    values,
)

from aiosemel import Compression, ProducerOptions, RecordMetadata
from aiosemel._producer.sending.pipeline import YIELD_BYTES
from aiosemel.errors import (
    IllegalStateError,
    InvalidRecordError,
    InvalidRequestError,
    InvalidTopicError,
    MessageTooLargeError,
    UnknownTopicOrPartitionError,
)
from semel.broker.v1.broker_pb2 import ProduceRequest
from semel_common.record_batches.batches import decode_records
from semel_common.record_batches.partitioner import partition_for_key
from semel_common.record_batches.payload_limits import HEADERS_PER_RECORD_MAX

# -- where records go ------------------------------------------------------------------------------


async def test_a_record_is_stored_and_says_where(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"first", partition=2)
        stored = await producer.send_and_wait("t", b"second", partition=2, timestamp_ms=77)
    assert stored == RecordMetadata(topic="t", partition=2, offset=1, timestamp_ms=77)
    assert fake.stored("t", 2) == [b"first", b"second"]


async def test_keys_headers_and_absent_values_arrive(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", None, key=b"k", headers=[("h", None), ("h", b"x")])
    (batch,) = fake.log("t", partition_for_key(b"k", 4)).batches
    columns = decode_records(batch)
    assert (columns.values, columns.keys) == ([None], [b"k"])
    assert columns.headers == {0: (("h", None), ("h", b"x"))}
    assert columns.timestamps_ms == [1_000], "the clock of the client"


async def test_records_without_a_key_share_a_batch_and_then_move_on(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        for _ in range(4):
            await producer.send("t", b"v")
            await producer.send("t", b"v")
            await producer.flush()
    sizes = [batch.record_count for p in range(4) for batch in fake.log("t", p).batches]
    assert sizes == [2, 2, 2, 2]


async def test_an_unknown_partition_is_refused(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        with pytest.raises(UnknownTopicOrPartitionError, match="no partition 4"):
            await client.producer().send("t", b"v", partition=4)


async def test_an_unknown_topic_is_waited_for(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        sending = asyncio.create_task(client.producer().send_and_wait("later", b"v"))
        await elapse(0.5)
        fake.create_topic("later")
        assert (await sending).topic == "later"


async def test_a_topic_that_does_not_come_is_an_error_in_max_block_ms(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer(ProducerOptions(max_block_ms=2_000))
        begun = asyncio.get_running_loop().time()
        with pytest.raises(UnknownTopicOrPartitionError, match="never"):
            await producer.send("never", b"v")
        assert asyncio.get_running_loop().time() - begun <= 2.1


@pytest.mark.parametrize(
    ("value", "key", "headers", "message"),
    [
        ("text", None, (), "value must be bytes or None, not str: encode it first"),
        (b"v", 5, (), "key must be bytes or None, not int"),
        (b"v", None, ((b"h", b"x"),), "header key must be str, not bytes"),
        (b"v", None, (("h", "x"),), "header value must be bytes or None, not str"),
        (bytearray(b"v"), None, (), "value must be bytes or None, not bytearray"),
    ],
)
async def test_a_value_that_is_not_bytes_is_refused(
    fake: FakeCluster, value: object, key: object, headers: object, message: str
) -> None:
    async with open_client(fake) as client:
        with pytest.raises(TypeError, match=message):
            await client.producer().send(
                "t",
                value,  # type: ignore[arg-type]  # the point
                key=key,  # type: ignore[arg-type]  # the point
                headers=headers,  # type: ignore[arg-type]  # the point
            )


async def test_more_headers_than_readers_open_are_refused(fake: FakeCluster) -> None:
    headers = [("", b"")] * (HEADERS_PER_RECORD_MAX + 1)
    async with open_client(fake) as client:
        producer = client.producer()
        with pytest.raises(InvalidRecordError, match="has 1025 headers: it may have 1024"):
            await producer.send("t", b"v", headers=headers)
        with pytest.raises(InvalidRecordError, match="has 1025 headers"):
            await producer.send_columns("t", [b"v"], headers=[headers])
        await producer.send_and_wait("t", b"v", headers=headers[1:])


@pytest.mark.parametrize(
    ("timestamp_ms", "error", "message"),
    [
        (-1, InvalidRequestError, "timestamp_ms is -1, not 0 to"),
        (1 << 63, InvalidRequestError, "timestamp_ms is 9223372036854775808"),
        (1.5, TypeError, "timestamp_ms must be int, not float"),
    ],
)
async def test_a_timestamp_must_be_one(
    fake: FakeCluster, timestamp_ms: int, error: type[Exception], message: str
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        with pytest.raises(error, match=message):
            await producer.send("t", b"v", timestamp_ms=timestamp_ms)
        with pytest.raises(error, match=message):
            await producer.send_columns("t", [b"v"], timestamp_ms=timestamp_ms)


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        ("", InvalidTopicError, "''"),
        ("a b", InvalidTopicError, "'a b'"),
        ("\ud800", InvalidTopicError, "ud800"),
        ("x" * 250, InvalidTopicError, "1 to 249"),
        (b"t", TypeError, "topic must be str, not bytes"),
    ],
    ids=["empty", "space", "surrogate", "long", "bytes"],
)
async def test_a_topic_that_cannot_be_is_refused_at_once(
    fake: FakeCluster, topic: str, error: type[Exception], message: str
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        with pytest.raises(error, match=message):
            await producer.send(topic, b"v")
        await producer.send_and_wait("t", b"v")


async def test_a_record_larger_than_a_request_is_refused(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        message = (
            r"topic 't': a record of 1,000,016 bytes exceeds max_request_size_bytes \(1,000,000\);"
            " raise this option of the producer or send smaller records"
        )
        with pytest.raises(MessageTooLargeError, match=message):
            await client.producer().send("t", bytes(1_000_000))


# -- batching --------------------------------------------------------------------------------------


async def test_what_queues_while_a_request_is_in_flight_is_the_next_batch(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"first", partition=0)
        for value in values(10):
            await producer.send("t", value, partition=0)
            await elapse(0.0005)
        await producer.flush()
    assert fake.stored("t", 0) == [b"first", *values(10)]
    assert [b.record_count for b in fake.log("t", 0).batches] == [1, 1, 4, 4, 1]


async def test_one_request_carries_all_partitions_of_a_broker(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        for partition in range(4):
            await producer.send("t", b"v", partition=partition)
        await producer.flush()
    (request,) = fake.asked(ProduceRequest)
    assert [p.partition for p in request.partitions] == [0, 1, 2, 3]
    assert request.transactional_id == ""


async def test_each_broker_gets_its_own_request() -> None:
    fake = FakeCluster(brokers=2)
    fake.create_topic("t", partitions=4)
    async with open_client(fake) as client:
        producer = client.producer()
        for partition in range(4):
            await producer.send("t", b"v", partition=partition)
        await producer.flush()
    assert len(fake.asked(ProduceRequest)) == 2
    assert [fake.stored("t", partition) for partition in range(4)] == [[b"v"]] * 4


async def test_a_sender_that_never_waits_does_not_starve_the_task(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer(ProducerOptions(batch_size_bytes=1_000))
        await producer.send_and_wait("t", b"v", partition=0)
        for value in values(2 * YIELD_BYTES // 100, size=100):
            await producer.send("t", value, partition=0)
        assert len(fake.asked(ProduceRequest)) > 1, "nothing was sent before the end"


async def test_order_is_kept_with_five_batches_in_flight(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer(ProducerOptions(batch_size_bytes=500))
        sent = values(200, size=50)
        for value in sent:
            await producer.send("t", value, partition=0)
        await producer.flush()
    assert fake.stored("t", 0) == sent


async def test_compressed_batches_arrive(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer(ProducerOptions(compression=Compression.ZSTD))
        await producer.send_columns("t", [bytes(1_000)] * 10, partition=0)
        await producer.flush()
    (batch,) = fake.log("t", 0).batches
    assert len(batch.payload) < 1_000
    assert fake.stored("t", 0) == [bytes(1_000)] * 10


# -- columns ---------------------------------------------------------------------------------------


async def test_columns_are_stored_in_order_and_say_where(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        sent = values(1_000, size=10)
        delivery = await producer.send_columns("t", sent, partition=1, timestamp_ms=5)
        with pytest.raises(IllegalStateError, match="still on their way"):
            delivery.result()
        assert not delivery.done()
        (stored,) = await delivery
        assert delivery.done()
    assert (stored.topic, stored.partition, stored.base_offset) == ("t", 1, 0)
    assert stored.record_count == 1_000
    assert fake.stored("t", 1) == sent


async def test_columns_are_cut_into_requests(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        options = ProducerOptions(max_request_size_bytes=10_000, batch_size_bytes=1_000)
        producer = client.producer(options)
        sent = values(1_000, size=84)
        pieces = await (await producer.send_columns("t", sent, partition=0))
    assert [piece.record_count for piece in pieces] == [100] * 10
    assert [piece.base_offset for piece in pieces] == list(range(0, 1_000, 100))
    assert fake.stored("t", 0) == sent


async def test_columns_without_keys_go_to_one_partition_after_the_other(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        for _ in range(4):
            await producer.send_columns("t", [b"v"] * 10)
        await producer.flush()
    assert [len(fake.stored("t", partition)) for partition in range(4)] == [10] * 4


async def test_columns_with_keys_are_spread_as_single_records_are(fake: FakeCluster) -> None:
    keys = [b"a", None, b"b", b"c", b"a"]
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_columns("t", values(5), keys=keys)
        await producer.flush()
    for value, key in zip(values(5), keys, strict=True):
        if key is not None:
            assert value in fake.stored("t", partition_for_key(key, 4))
    assert fake.stored("t", partition_for_key(b"a", 4)).index(b"0") == 0
    assert sum(len(fake.stored("t", partition)) for partition in range(4)) == 5


async def test_columns_may_hold_absent_values(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_columns("t", [b"a", None], keys=[None, b"k"], partition=0)
        await producer.flush()
    assert fake.stored("t", 0) == [b"a", None]


async def test_columns_have_headers_and_times_where_they_are_given(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer(ProducerOptions(max_request_size_bytes=80, batch_size_bytes=80))
        for partition in (partition_for_key(b"k", 4), None):
            pieces = await (
                await producer.send_columns(
                    "t",
                    [b"0", b"1", b"2", b"3"],
                    keys=[b"k"] * 4,
                    partition=partition,
                    headers=[(), [("h", b"x")], (), [("h", None), ("h", b"")]],
                    timestamps_ms=[7, 6, 5, 8],
                )
            )
            assert [piece.record_count for piece in pieces] == [3, 1]
    stored = [decode_records(batch) for batch in fake.log("t", partition_for_key(b"k", 4)).batches]
    for first, second in (stored[:2], stored[2:]):
        assert first.values == [b"0", b"1", b"2"]
        assert [*first.timestamps_ms, *second.timestamps_ms] == [7, 6, 5, 8]
        assert first.headers == {1: (("h", b"x"),)}
        assert second.headers == {0: (("h", None), ("h", b""))}


async def test_headers_of_columns_follow_those_of_the_batch_that_they_join(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_columns("t", [b"0", b"1"], partition=0)
        await producer.send_columns("t", [b"2"], partition=0, headers=[[("h", b"x")]])
        await producer.flush()
    (batch,) = fake.log("t", 0).batches
    assert decode_records(batch).headers == {2: (("h", b"x"),)}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"headers": [()]}, "2 values have 1 headers"),
        ({"timestamps_ms": [1]}, "2 values have 1 timestamps_ms"),
        ({"timestamps_ms": [1, -1]}, "timestamp_ms is -1"),
        ({"timestamps_ms": [1, 1], "timestamp_ms": 1}, "both timestamp_ms and timestamps_ms"),
    ],
    ids=["headers", "times", "time", "both"],
)
async def test_columns_that_do_not_fit_one_another_are_refused(
    fake: FakeCluster, columns: dict[str, list[int]], message: str
) -> None:
    async with open_client(fake) as client:
        with pytest.raises(InvalidRequestError, match=message):
            await client.producer().send_columns("t", [b"a", b"b"], **columns)  # type: ignore[arg-type]  # as the names say
    assert not fake.asked(ProduceRequest)


@pytest.mark.parametrize(
    ("columns", "keys", "error", "message"),
    [
        ([b"a", "b"], None, TypeError, "value must be bytes or None, not str"),
        ([b"a"], [7], TypeError, "key must be bytes or None, not int"),
        ([b"a", b"b"], [b"k"], InvalidRequestError, "2 values have 1 keys"),
        ([b"a", bytes(1_000_000)], None, MessageTooLargeError, "1,000,016"),
    ],
    ids=["value", "key", "lengths", "size"],
)
async def test_columns_at_fault_are_refused(
    fake: FakeCluster,
    columns: list[bytes],
    keys: list[bytes | None] | None,
    error: type[Exception],
    message: str,
) -> None:
    async with open_client(fake) as client:
        for partition in (0, None):
            with pytest.raises(error, match=message):
                await client.producer().send_columns("t", columns, keys=keys, partition=partition)
    assert not fake.asked(ProduceRequest), "a row before the one at fault was sent"


async def test_no_columns_are_no_work(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        delivery = await client.producer().send_columns("t", [])
        assert await delivery == ()


async def test_a_partition_that_a_topic_has_got_since_is_found(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send("t", b"v", partition=0)
        fake.enlarge_topic("t", 6)
        await producer.send("t", b"new", partition=5)
        with pytest.raises(UnknownTopicOrPartitionError, match="has 6 partitions, no partition 6"):
            await producer.send("t", b"v", partition=6)
        await producer.flush()
    assert fake.stored("t", 5) == [b"new"]
