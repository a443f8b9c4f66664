"""Record batches: what goes in comes out, and damage is found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.common.v1.records_pb2 import Codec, RecordBatch
from semel_common.batches import (
    Columns,
    check_crc,
    control_batch,
    decode_records,
    seal,
)
from semel_common.errors import CorruptMessageError
from semel_common.sequences import next_sequence

ITEM = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=5), ITEM), max_size=3).map(tuple)


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    """Draw columns with and without keys, headers, absent and empty items."""
    count = draw(st.integers(1, 20))
    column = st.lists(ITEM, min_size=count, max_size=count)
    positions = st.integers(0, count - 1)
    return Columns(
        values=draw(column),
        keys=draw(st.none() | column),
        timestamps_ms=draw(st.lists(st.integers(0, 1 << 50), min_size=count, max_size=count)),
        headers=draw(st.dictionaries(positions, HEADERS, max_size=3)),
    )


def sealed(content: Columns, codec: Codec.ValueType = Codec.CODEC_UNSPECIFIED) -> RecordBatch:
    """Seal columns as a producer would."""
    return seal(
        content,
        producer_id=7,
        producer_epoch=3,
        base_sequence=5,
        transactional=True,
        codec=codec,
    )


@given(columns(), st.sampled_from([Codec.CODEC_UNSPECIFIED, Codec.CODEC_ZSTD]))
def test_columns_come_out_of_a_batch_as_they_went_in(
    content: Columns, codec: Codec.ValueType
) -> None:
    batch = sealed(content, codec)
    check_crc(batch, batch.payload)
    opened = decode_records(batch)
    assert list(opened.values) == list(content.values)
    # A column of nothing but absent keys is the same as no column.
    all_absent = [None] * len(content.values)
    assert list(opened.keys or all_absent) == list(content.keys or all_absent)
    assert list(opened.timestamps_ms) == list(content.timestamps_ms)
    assert opened.headers == content.headers


@given(columns(), st.data())
def test_one_flipped_bit_anywhere_in_the_payload_is_found(
    content: Columns, data: st.DataObject
) -> None:
    batch = sealed(content)
    position = data.draw(st.integers(0, len(batch.payload) - 1))
    damaged = bytearray(batch.payload)
    damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    batch.payload = bytes(damaged)
    with pytest.raises(CorruptMessageError, match="CRC-32C"):
        check_crc(batch, batch.payload)


@pytest.mark.parametrize(
    "change",
    [
        {"record_count": 9},
        {"producer_id": 8},
        {"producer_epoch": 4},
        {"base_sequence": 6},
        {"transactional": False},
        {"control": True},
        {"codec": Codec.CODEC_ZSTD},
        {"max_timestamp_ms": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_crc_covers_every_header_field_but_the_offset(change: dict[str, int]) -> None:
    batch = sealed(Columns(values=[b"x"], keys=None, timestamps_ms=[5], headers={}))
    batch.base_offset = 4711
    check_crc(batch, batch.payload)
    batch.MergeFrom(RecordBatch(**change))  # type: ignore[arg-type]  # one field each
    if change == {"transactional": False}:
        batch.transactional = False
    with pytest.raises(CorruptMessageError):
        check_crc(batch, batch.payload)


def test_a_payload_with_fewer_records_than_its_header_says_is_refused() -> None:
    batch = sealed(Columns(values=[b"x"], keys=None, timestamps_ms=[5], headers={}))
    batch.record_count = 2
    with pytest.raises(CorruptMessageError, match="says 2 records and holds 1"):
        decode_records(batch)


@pytest.mark.parametrize("codec", [Codec.CODEC_UNSPECIFIED, Codec.CODEC_ZSTD])
def test_a_payload_that_is_no_message_is_refused(codec: Codec.ValueType) -> None:
    batch = RecordBatch(base_offset=12, record_count=1, codec=codec, payload=b"\xff\xff\xff")
    with pytest.raises(CorruptMessageError, match="at offset 12"):
        decode_records(batch)


def test_a_marker_is_a_control_batch_of_one_record() -> None:
    marker = control_batch(
        producer_id=7, producer_epoch=3, committed=True, coordinator_epoch=2, timestamp_ms=9
    )
    check_crc(marker, marker.payload)
    assert (marker.control, marker.transactional, marker.record_count) == (True, True, 1)


def test_sequences_wrap_from_the_highest_to_zero() -> None:
    """C-212."""
    assert next_sequence(2_147_483_647, 1) == 0
    assert next_sequence(2_147_483_646, 5) == 3
    assert next_sequence(0, 4) == 4
