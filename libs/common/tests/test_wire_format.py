"""The primitives of the wire format, and the scan, against protobuf itself."""

from typing import cast

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from hypothesis import given
from hypothesis import strategies as st

from semel.common.v1.participants_pb2 import TopicPartitions
from semel.common.v1.records_pb2 import Record, RecordBatch, Records
from semel.coordinator.v1.cluster_pb2 import MetadataResponse, Topic
from semel_common.wire.messages.message_scan import BoundError, ScanError, check_message, shape_of
from semel_common.wire.messages.wire_format import (
    FIXED32,
    FIXED64,
    LENGTH_DELIMITED,
    VARINT,
    Data,
    WireFormatError,
    packed_count,
    read_varint,
    skip_value,
    varint,
)

UINT64 = st.integers(0, (1 << 64) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(UINT64, st.binary(max_size=3), st.sampled_from([bytes, bytearray, memoryview]))
def test_a_number_is_read_as_it_was_written(
    number: int, before: bytes, kind: type[bytes | bytearray | memoryview]
) -> None:
    data = before + varint(number)
    assert read_varint(kind(data + b"\xff"), len(before)) == (number, len(data))


@given(INT64)
def test_a_number_is_written_as_protobuf_does(number: int) -> None:
    written = Records(base_timestamp_ms=number).SerializeToString()
    if number:
        tag, at = read_varint(written, 0)
        value, end = read_varint(written, at)
        assert written == varint(tag) + varint(value)
        assert end == len(written)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 9])
def test_a_number_that_is_cut_off_is_malformed(data: bytes) -> None:
    with pytest.raises(WireFormatError, match="ends within a number"):
        read_varint(data, 0)


def test_a_number_of_more_than_ten_bytes_is_malformed() -> None:
    assert read_varint(b"\x80" * 9 + b"\x01", 0) == (1 << 63, 10)
    with pytest.raises(WireFormatError, match="more than 10 bytes"):
        read_varint(b"\x80" * 10 + b"\x01", 0)


@pytest.mark.parametrize(
    ("wire_type", "value"),
    [
        (VARINT, b"\x05"),
        (VARINT, b"\xff\xff\x03"),
        (FIXED64, bytes(8)),
        (FIXED32, bytes(4)),
        (LENGTH_DELIMITED, b"\x00"),
        (LENGTH_DELIMITED, b"\x80\x01" + bytes(128)),
    ],
)
def test_a_value_ends_where_the_next_tag_begins(wire_type: int, value: bytes) -> None:
    assert skip_value(b"\x08" + value + b"\x08", 1, 15 << 3 | wire_type) == 1 + len(value)


@pytest.mark.parametrize("wire_type", [3, 4, 6, 7])
def test_groups_and_unknown_wire_types_are_malformed(wire_type: int) -> None:
    with pytest.raises(WireFormatError, match=f"wire type {wire_type}"):
        skip_value(bytes(9), 0, wire_type)


@given(st.lists(INT32))
def test_packed_numbers_are_counted_as_protobuf_parses_them(numbers: list[int]) -> None:
    written = TopicPartitions(partitions=numbers).SerializeToString()
    start = len(written) and read_varint(written, 1)[1]
    for data in (written[start:], bytearray(written[start:]), memoryview(written)[start:]):
        assert packed_count(data, 0) == len(numbers)


@pytest.mark.parametrize("fixed_bytes", [4, 8])
def test_packed_numbers_of_a_fixed_size_are_counted_by_their_size(fixed_bytes: int) -> None:
    assert packed_count(b"\xff" * fixed_bytes * 3, fixed_bytes) == 3


TOPICS = st.builds(
    Topic,
    name=st.text(),
    configs=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(MetadataResponse, topics=st.lists(TOPICS, max_size=4)),
    st.builds(TopicPartitions, topic_id=st.text(), partitions=st.lists(INT32)),
    st.builds(RecordBatch, producer_id=INT64, record_count=INT32, payload=st.binary()),
    st.builds(Record, key=st.binary(), value=st.binary(min_size=100, max_size=400)),
)


def elements_of(message: Message) -> int:
    """Count fields of all levels, and numbers in lists, on the parsed message."""
    total = 0
    for field, value in message.ListFields():
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        entries = list(value) if field.is_repeated else [value]
        if is_map:
            total += 3 * len(entries)
        elif field.message_type is not None:
            total += sum(1 + elements_of(entry) for entry in entries)
        else:
            is_packed = field.is_repeated and field.cpp_type != field.CPPTYPE_STRING
            total += len(entries) + is_packed
    return total


def scan(data: Data, of: type[Message], elements_max: int) -> None:
    check_message(
        data, shape_of(cast("Descriptor", of.DESCRIPTOR), lambda _: None), elements_max=elements_max
    )


@given(MESSAGES)
def test_a_scan_counts_the_elements_that_protobuf_parses(message: Message) -> None:
    data, elements = message.SerializeToString(), elements_of(message)
    scan(data, type(message), elements)
    if elements:
        with pytest.raises(BoundError, match=f"has more than {elements - 1} elements"):
            scan(data, type(message), elements - 1)


@given(MESSAGES, st.data())
def test_a_scan_takes_no_message_that_is_cut_off_within_a_field(
    message: Message, data: st.DataObject
) -> None:
    whole = message.SerializeToString()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    try:
        scan(cut, type(message), 10_000)
    except ScanError:
        with pytest.raises(DecodeError):
            type(message).FromString(cut)
    else:
        type(message).FromString(cut)
