"""Columns that encode themselves: they are cut, sent and stored as lists of the same are."""

from collections.abc import Sequence

import pytest
from encoded_lists import EncodedList, encoded
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from producer_harness import FakeCluster, open_client, values

from aiosemel import Compression, Producer, ProducerOptions
from aiosemel._producer.batching.accumulator import Accumulator
from aiosemel._producer.batching.batch import Batch, Request
from aiosemel._producer.batching.batch_splitting import cut
from aiosemel._producer.batching.columns import EncodedRows, Rows, checked
from aiosemel._producer.batching.limits import Limits
from aiosemel._producer.sending.request_encoding import produce_request
from aiosemel.errors import InvalidRequestError, MessageTooLargeError
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import RecordBatch, Records
from semel_common.ids import TopicPartition
from semel_common.record_batches.batches import decode_records
from semel_common.record_batches.encoded_records import KEYS_TAG, VALUES_TAG
from semel_common.record_batches.partitioner import partition_for_key
from semel_common.telemetry.trace_context import TRACEPARENT
from semel_common.wire.messages.message_pieces import tag

P0 = TopicPartition("t", 0)
SIZE_MAX_BYTES = 1_000_000
LIMITS = Limits(
    batch_size_bytes=SIZE_MAX_BYTES,
    request_size_max_bytes=SIZE_MAX_BYTES,
    memory_bytes=SIZE_MAX_BYTES,
    in_flight_max=5,
    delivery_timeout_ms=100,
)

Items = list[bytes | None]
Sent = tuple[Items, Items | None, list[int] | None]


@st.composite
def sends(draw: st.DrawFn) -> Sent:
    """Draw the values, keys and times of one send."""
    count = draw(st.integers(1, 8))
    item = st.none() | st.binary(max_size=4) | st.binary(min_size=120, max_size=140)
    items = st.lists(item, min_size=count, max_size=count)
    time = st.integers(0, 3) | st.integers(0, 1 << 62)
    times = st.lists(time, min_size=count, max_size=count)
    return draw(items), draw(st.none() | items), draw(st.none() | times)


def rows_of(sent: Sent, *, encoding: bool) -> Rows:
    content, keys, times = sent
    return checked(
        EncodedList(content) if encoding else content,
        keys=encoded(keys) if encoding else keys,
        headers=None,
        timestamp_ms=None,
        timestamps_ms=times,
    )


def batch_of(several: Sequence[Sent], *, encoding: bool) -> Batch:
    """Return the batch that all these sends have come into."""
    accumulator = Accumulator(LIMITS, transactional=False, cut=cut)
    batch = accumulator.begin_batch(P0, now_ms=0, limit_bytes=SIZE_MAX_BYTES)
    for sent in several:
        rows = rows_of(sent, encoding=encoding)
        if isinstance(rows, EncodedRows):
            stop = len(rows.values)
            records, times = rows.cut(0, stop), rows.times(0, stop, 7)
            accumulator.append_encoded(batch, records=records, timestamps_ms=times, size_bytes=1)
        else:
            accumulator.append_columns(batch, rows=rows, timestamp_ms=7, size_bytes=1)
    return batch


def written(batch: Batch, compression: Compression = Compression.NONE) -> bytes:
    return produce_request(
        Request("broker", (batch,)),
        transactional_id=None,
        compression=compression,
    ).SerializeToString()


def stored(batch: Batch) -> RecordBatch:
    (partition,) = broker.ProduceRequest.FromString(written(batch)).partitions
    return partition.batches[0]


def test_the_tags_are_those_of_the_message() -> None:
    assert (tag(Records, "keys"), tag(Records, "values")) == (KEYS_TAG, VALUES_TAG)


@given(st.lists(sends(), min_size=1, max_size=4), st.sampled_from(Compression))
def test_a_request_is_the_same_as_that_of_lists(
    several: list[Sent], compression: Compression
) -> None:
    lists, columns = (batch_of(several, encoding=encoding) for encoding in (False, True))
    assert columns.encoded
    assert written(columns, compression) == written(lists, compression)


@given(sends(), st.integers(16, 500))
def test_columns_are_cut_as_lists_are(sent: Sent, size_max_bytes: int) -> None:
    def cut(*, encoding: bool) -> object:
        try:
            return list(rows_of(sent, encoding=encoding).slices(size_max_bytes))
        except MessageTooLargeError as error:
            return error.message

    assert cut(encoding=True) == cut(encoding=False)


@given(st.lists(sends(), min_size=1, max_size=3))
def test_a_trace_is_written_into_encoded_records_too(several: list[Sent]) -> None:
    lists, columns = (batch_of(several, encoding=encoding) for encoding in (False, True))
    context = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    for batch in (lists, columns):
        batch.span = NonRecordingSpan(context)
    assert written(columns) == written(lists)
    headers = decode_records(stored(columns)).headers
    assert {name for ((name, _),) in headers.values()} == {TRACEPARENT}
    assert len(headers) == columns.record_count


def test_a_span_that_is_not_sampled_changes_nothing() -> None:
    sent: Sent = ([b"v"], None, None)
    plain, spanned = (batch_of([sent], encoding=True) for _ in range(2))
    spanned.span = NonRecordingSpan(SpanContext(1, 2, is_remote=False))
    assert written(spanned) == written(plain)


@pytest.mark.parametrize("keys", [None, [b"k", None]], ids=["none", "some"])
def test_records_of_one_kind_share_a_batch(keys: Items | None) -> None:
    accumulator = Accumulator(LIMITS, transactional=False, cut=cut)
    assert accumulator.open_batch(P0, 1, encoded=True) is None
    batch = accumulator.begin_batch(P0, now_ms=0, limit_bytes=SIZE_MAX_BYTES)
    rows = rows_of(([b"1", b"2"], keys, None), encoding=True)
    assert isinstance(rows, EncodedRows)
    accumulator.append_encoded(
        batch, records=rows.cut(0, 2), timestamps_ms=[5, 5], size_bytes=SIZE_MAX_BYTES - 10
    )
    assert batch.record_count == 2
    assert accumulator.used_bytes == SIZE_MAX_BYTES - 10
    assert accumulator.open_batch(P0, 10, encoded=True) is batch
    assert accumulator.open_batch(P0, 11, encoded=True) is None
    assert accumulator.open_batch(P0, 10) is None
    accumulator.fail_all(InvalidRequestError("no more"))
    assert (batch.encoded, batch.record_count) == ([], 2)


# -- a producer ------------------------------------------------------------------------------------


async def send(
    producer: Producer,
    content: Sequence[bytes | None],
    keys: Items | None = None,
    partition: int | None = None,
) -> list[tuple[int, int, int]]:
    """Send and return where each piece is: partition, base offset, record count."""
    sending = await producer.send_columns(
        "t", EncodedList(content), keys=encoded(keys), partition=partition
    )
    return [(each.partition, each.base_offset, each.record_count) for each in await sending]


async def test_encoded_columns_are_stored_in_pieces_that_fit(fake: FakeCluster) -> None:
    options = ProducerOptions(max_request_size_bytes=1_000, batch_size_bytes=1_000)
    async with open_client(fake) as client:
        sent = values(25, size=84)
        pieces = await send(client.producer(options), sent, partition=1)
    assert pieces == [(1, 0, 10), (1, 10, 10), (1, 20, 5)]
    assert fake.stored("t", 1) == sent


async def test_encoded_columns_without_keys_go_to_one_partition_after_the_other(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        for _ in range(4):
            await send(producer, [b"v", None])
    assert [fake.stored("t", partition) for partition in range(4)] == [[b"v", None]] * 4


async def test_encoded_keys_say_where_records_go(fake: FakeCluster) -> None:
    keys: Items = [b"a", None, b"b", b"a"]
    async with open_client(fake) as client:
        await send(client.producer(), values(4), keys)
    for value, key in zip(values(4), keys, strict=True):
        if key is not None:
            assert value in fake.stored("t", partition_for_key(key, 4))
    assert sum(len(fake.stored("t", partition)) for partition in range(4)) == 4


@pytest.mark.parametrize("keys", [None, []], ids=["without", "with"])
async def test_encoded_columns_of_nothing_are_no_work(
    fake: FakeCluster, keys: Items | None
) -> None:
    async with open_client(fake) as client:
        assert await send(client.producer(), [], keys) == []


async def test_both_kinds_of_columns_are_stored_in_order(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send("t", b"0", partition=0)
        await producer.send_columns("t", EncodedList([b"1", b"2"]), partition=0)
        await producer.send_columns("t", [b"3"], partition=0)
        last = await producer.send("t", b"4", partition=0)
        assert (await last).offset == 4
    assert fake.stored("t", 0) == values(5)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"keys": [b"k"]}, "only one of values and keys is encoded"),
        ({"keys": EncodedList([b"k", b"k"])}, "1 values have 2 keys"),
        ({"headers": [()]}, "encoded columns cannot have headers"),
        ({"timestamps_ms": [1, 2]}, "1 values have 2 timestamps_ms"),
    ],
    ids=["list", "length", "headers", "times"],
)
async def test_what_does_not_go_with_encoded_columns_is_refused(
    fake: FakeCluster, columns: dict[str, list[int]], message: str
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        with pytest.raises(InvalidRequestError, match=message):
            await producer.send_columns("t", EncodedList([b"v"]), **columns)  # type: ignore[arg-type]  # as the names say


async def test_lists_with_encoded_keys_are_refused(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        with pytest.raises(InvalidRequestError, match="only one of values and keys is encoded"):
            await client.producer().send_columns("t", [b"v"], keys=EncodedList([b"k"]))
