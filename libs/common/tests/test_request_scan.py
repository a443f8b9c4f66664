"""What a large message holds is counted on its bytes, before any object is made of it."""

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.errors import InvalidRequestError
from semel_common.wire import methods
from semel_common.wire.frames.stream_messages import STREAMS, RefusedFrame
from semel_common.wire.messages import request_bounds
from semel_common.wire.messages.request_bounds import BOUNDS
from semel_common.wire.messages.request_scan import (
    SCANNED_FROM_BYTES,
    check_request,
    frames_of,
    refused_frames,
)
from semel_common.wire.messages.wire_format import varint
from semel_common.wire.methods import Method

METHODS = [var for var in vars(methods).values() if isinstance(var, Method)]
LARGE = bytes(SCANNED_FROM_BYTES)
UNKNOWN = b"\x7a" + bytes((0x80, 0x80, 0x01)) + LARGE
"""A field that no contract has, and large enough that the message is scanned."""


def bounded_fields(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    """Return the fields of a message, and of those in it, that may hold much."""
    found: dict[str, FieldDescriptor] = {}
    for field in descriptor.fields:
        if field.is_repeated or field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            found[field.full_name] = field
        if field.message_type is not None:
            found |= bounded_fields(field.message_type)
    return found


FIELDS = {
    name: each
    for descriptor in (
        *(method.request.DESCRIPTOR for method in METHODS),
        *(types.request_frame.DESCRIPTOR for types in STREAMS.values()),
    )
    for name, each in bounded_fields(descriptor).items()
}


def test_every_field_of_every_request_has_a_bound() -> None:
    assert set(FIELDS) == set(BOUNDS)


@pytest.mark.parametrize("name", FIELDS)
def test_a_text_or_a_list_is_never_without_a_bound_of_its_kind(name: str) -> None:
    is_number = FIELDS[name].type not in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
    if FIELDS[name].is_repeated:
        assert BOUNDS[name].count_max <= request_bounds.OFFSETS_MAX
    assert (
        is_number is (BOUNDS[name].size_max_bytes is None) or BOUNDS[name] == request_bounds.CONTENT
    )


def test_no_request_holds_itself() -> None:
    """The scan goes as deep as the contract does: its depth is bounded by it."""

    def depth(descriptor: Descriptor, above: tuple[Descriptor, ...]) -> int:
        assert descriptor not in above
        below = [
            field.message_type for field in descriptor.fields if field.message_type is not None
        ]
        return 1 + max((depth(each, (*above, descriptor)) for each in below), default=0)

    for method in METHODS:
        assert depth(method.request.DESCRIPTOR, ()) < 10


TOO_MANY: list[tuple[type[Message], bytes, str]] = [
    (broker.ProduceRequest, b"\x12\0", "partitions has more than 1,000 entries"),
    (broker.ProduceRequest, b"\x12\x02\x22\0", "has more than 1,000 entries"),
    (broker.ProduceRequest, b"\x12\x04\x2a\x02\x0a\0", "partitions has more than"),
    (cluster.MetadataRequest, b"\x0a\0", "topics has more than 1,000 entries"),
    (cluster.CreateTopicsRequest, b"\x0a\x02\x1a\0", "has more than 1,000 entries"),
    (transactions.EndTxnRequest, b"\x2a\x02\x12\0", "group_ids has more than 100,000 entries"),
    (transactions.ListTransactionsRequest, b"\x10\1", "producer_ids has more than 10,000 entries"),
    (participants.WriteTxnMarkersRequest, b"\x12\0", "markers has more than 10,000 entries"),
    (group.FetchOffsetsRequest, b"\x12\x02\x18\1", "has more than 100,000 entries"),
    (group.DescribeGroupsRequest, b"\x78\1", "has more than 500,000 fields"),
    (group.DescribeGroupsRequest, b"\x0a\0", "group_ids has more than 10,000 entries"),
]


@pytest.mark.parametrize(("request_type", "entry", "why"), TOO_MANY)
def test_a_message_of_too_many_entries_is_refused(
    request_type: type[Message], entry: bytes, why: str
) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        check_request(request_type, entry * 600_000)


def test_packed_numbers_are_counted_one_by_one() -> None:
    for count, large in (
        (request_bounds.OFFSETS_MAX, False),
        (request_bounds.OFFSETS_MAX + 1, True),
    ):
        topic = participants.TopicPartitions(topic_id="t", partitions=[300] * count)
        message = transactions.AddPartitionsToTxnRequest(topics=[topic]).SerializeToString()
        if large:
            with pytest.raises(InvalidRequestError, match="partitions has more than 100,000"):
                check_request(transactions.AddPartitionsToTxnRequest, message)
        else:
            check_request(transactions.AddPartitionsToTxnRequest, message)


def test_entries_of_all_places_are_counted_together() -> None:
    topic = group.OffsetFetchTopic(topic="t", partitions=range(60_000))
    one = group.FetchOffsetsRequest(topics=[topic]).SerializeToString()
    check_request(group.FetchOffsetsRequest, one)
    with pytest.raises(InvalidRequestError, match="partitions has more than 100,000"):
        check_request(group.FetchOffsetsRequest, one + one)


def test_a_name_that_is_too_long_is_refused() -> None:
    message = group.DescribeGroupsRequest(group_ids=["x" * 20_000]).SerializeToString()
    with pytest.raises(InvalidRequestError, match="group_ids has 20,000 bytes: at most 1,020"):
        check_request(group.DescribeGroupsRequest, message)


@pytest.mark.parametrize(
    "end", [b"\x12", b"\x12\x05\0", b"\x12\xff", b"\x13", b"\xff" * 11, b"\x0d\0", b"\x08\x80"]
)
def test_a_message_that_is_cut_off_is_refused(end: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="is no ProduceRequest"):
        check_request(broker.ProduceRequest, UNKNOWN + end)


def test_fields_of_a_newer_release_are_passed_over() -> None:
    newer = b"\xa0\x06\1" + b"\xad\x06" + bytes(4) + b"\xb1\x06" + bytes(8)
    check_request(broker.ProduceRequest, UNKNOWN + newer)


@given(st.data())
def test_what_protobuf_writes_is_never_refused(data: st.DataObject) -> None:
    topics = data.draw(st.lists(st.lists(st.integers(0, 1 << 31), max_size=9), max_size=9))
    request = group.TxnOffsetCommitRequest(
        transactional_id="t",
        producer_id=data.draw(st.integers(0, 1 << 62)),
        topics=[
            group.OffsetCommitTopic(
                topic="é",
                partitions=[
                    group.OffsetCommitPartition(committed_offset=offset, metadata="m" * 3_000)
                    for offset in offsets
                ],
            )
            for offsets in topics
        ],
    )
    check_request(group.TxnOffsetCommitRequest, request.SerializeToString() + UNKNOWN)


def frame(number: int, content: bytes) -> bytes:
    """Return a frame of a broker's stream with a Produce request."""
    request = broker.RequestFrame(correlation_id=number).SerializeToString()
    request += b"\x2a" + varint(len(content)) + content
    return b"\x0a" + varint(len(request)) + request


def test_a_frame_that_holds_too_much_is_refused_by_its_number() -> None:
    types = STREAMS[methods.BROKER]
    good, bad = frame(7, b""), frame(8, b"\x12\0" * 10_000)
    first, second, third = types.read_requests(good + bad + good)
    assert (first, third) == (types.request_frame.FromString(good[2:]),) * 2
    assert isinstance(second, RefusedFrame)
    assert second.correlation_id == 8
    assert second.error.message.startswith("partitions has more than 1,000 entries")


def test_a_list_that_claims_bytes_behind_its_frame_is_cut_off() -> None:
    """Numbers behind the frame are not counted: each of many frames could claim all of them."""
    claimed = b"\x12" + varint(1 << 20) + bytes(5_000)
    topics = b"\x22" + varint(len(claimed)) + claimed
    content = b"\x08\x01\x2a" + varint(len(topics)) + topics
    message = b"\x0a" + varint(len(content)) + content + b"\x7a" + varint(2 << 20) + bytes(2 << 20)
    types = STREAMS[methods.TRANSACTIONS]
    spans = frames_of(types.stream_request.DESCRIPTOR, message)
    refused = refused_frames(types.request_frame.DESCRIPTOR, message, spans)
    assert [error.message for error in refused.values()] == [
        f"the message of {len(content):,} bytes is no RequestFrame"
    ]


def test_frames_that_are_refused_take_their_cost_from_the_message() -> None:
    types = STREAMS[methods.BROKER]
    message = frame(1, b"\x12\0" * 5_000) * 600
    spans = frames_of(types.stream_request.DESCRIPTOR, message)
    refused = refused_frames(types.request_frame.DESCRIPTOR, message, spans)
    whys = [refused[span].message for span in spans]
    assert whys[0] == "partitions has more than 1,000 entries: send several requests"
    assert "has more than 500,000 fields: send several requests" in whys[-1]


def test_small_frames_are_scanned_too_once_they_are_many() -> None:
    types = STREAMS[methods.BROKER]
    small = frame(1, b"\x12\0" * 1_900)
    read = types.read_requests(small * 600)
    refused = [each for each in read if isinstance(each, RefusedFrame)]
    assert len(refused) > 250


@pytest.mark.parametrize(
    "message", [b"\x0a\0" * 20_000, LARGE + b"\x0a", b"\x0a\xff\xff\x7f" + LARGE]
)
def test_a_message_of_too_many_frames_or_of_none_is_refused(message: bytes) -> None:
    with pytest.raises(InvalidRequestError, match=r"is no StreamRequest|more than 16,384 frames"):
        STREAMS[methods.BROKER].read_requests(message)
