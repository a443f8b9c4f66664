"""Requests are written in pieces, and are the same bytes as if protobuf had written them whole."""

import pytest
from accumulator_harness import made
from hypothesis import given
from hypothesis import strategies as st

from aiosemel import Compression
from aiosemel._producer.batching.batch import Batch, Request
from aiosemel._producer.batching.columns import RowColumns
from aiosemel._producer.sending.request_encoding import CODECS, produce_request
from semel.broker.v1 import broker_pb2 as broker
from semel_common.ids import TopicPartition
from semel_common.record_batches.batches import Columns, seal
from semel_common.wire.messages.wire_format import varint

SIZE_MAX_BYTES = 1_000_000
Row = tuple[bytes | None, bytes | None, int]

rows = st.tuples(
    st.none() | st.binary(max_size=200), st.none() | st.binary(max_size=10), st.integers(0, 1 << 62)
)


def batch_of(rows: list[Row], partition: int = 0, expected_base_offset: int | None = None) -> Batch:
    accumulator = made()
    batch = accumulator.begin_batch(TopicPartition("topic", partition), 0, SIZE_MAX_BYTES)
    values, keys, times = ([row[column] for row in rows] for column in range(3))
    columns = RowColumns.checked(
        values,  # type: ignore[arg-type]  # the columns of rows
        keys=keys,  # type: ignore[arg-type]  # the columns of rows
        headers=None,
        timestamp_ms=None,
        timestamps_ms=times,  # type: ignore[arg-type]  # the columns of rows
    )
    accumulator.append_columns(batch, rows=columns, timestamp_ms=0, size_bytes=1)
    batch.expected_base_offset = expected_base_offset
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 7, 0, partition
    return batch


def whole(
    batches: list[Batch], transactional_id: str, compression: Compression, token: bytes
) -> bytes:
    """Write a request as protobuf does."""
    request = broker.ProduceRequest(transactional_id=transactional_id, producer_token=token)
    for batch in batches:
        columns = Columns(
            values=batch.values,
            keys=batch.keys,
            timestamps_ms=batch.timestamps_ms,
            headers=batch.headers,
        )
        sealed = seal(
            columns,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=bool(transactional_id),
            codec=CODECS[compression],
        )
        topic_id, partition = batch.topic_partition
        request.partitions.add(
            topic_id=topic_id,
            partition=partition,
            batches=[sealed],
            expected_base_offset=batch.expected_base_offset,
        )
    return request.SerializeToString()


@given(
    contents=st.lists(st.lists(rows, min_size=1, max_size=5), max_size=3),
    transactional_id=st.sampled_from(["", "app"]),
    compression=st.sampled_from(Compression),
    token=st.sampled_from([b"", b"proof"]),
    expected_base_offset=st.sampled_from([None, 0, 1 << 40]),
)
def test_a_request_is_what_protobuf_would_write(
    contents: list[list[Row]],
    transactional_id: str,
    compression: Compression,
    token: bytes,
    expected_base_offset: int | None,
) -> None:
    batches = [
        batch_of(content, partition, expected_base_offset)
        for partition, content in enumerate(contents)
    ]
    written = produce_request(
        Request("broker", tuple(batches)),
        transactional_id=transactional_id or None,
        compression=compression,
        producer_token=token,
    )
    assert written.SerializeToString() == whole(batches, transactional_id, compression, token)


def test_a_payload_is_a_piece_of_its_own() -> None:
    value = b"x" * 1_000_000
    written = produce_request(
        Request("broker", (batch_of([(value, None, 0)]),)),
        transactional_id=None,
        compression=Compression.NONE,
    )
    *others, payload = sorted(map(len, written.pieces))
    assert payload > len(value)
    assert sum(others) < 100


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 1 << 21, (1 << 63) - 1])
def test_numbers_are_written_as_protobuf_writes_them(number: int) -> None:
    field = broker.ProducePartitionResult(base_offset=number).SerializeToString()[1:]
    assert varint(number) == (field or b"\0")
