"""Bounds on answers, checked on their bytes."""

from typing import cast

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1 import participants_pb2 as participants
from semel.common.v1 import records_pb2 as records
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.wire import methods
from semel_common.wire.messages.message_scan import ScanError
from semel_common.wire.messages.response_parsing import AnswerBounds, check_answer
from semel_common.wire.messages.wire_format import varint

METADATA = cluster.MetadataResponse
EMPTY_TOPIC = b"\x2a\x00"


def bounds(elements: int = 4, *, size: int = 1 << 20) -> AnswerBounds:
    return AnswerBounds(size_max_bytes=size, elements_max=elements)


def check(message: Message, within: AnswerBounds) -> None:
    check_answer(message.SerializeToString(), type(message), within)


def refused(data: bytes, within: AnswerBounds) -> str:
    with pytest.raises(ScanError) as caught:
        check_answer(data, METADATA, within)
    return str(caught.value)


def test_message_with_as_many_elements_as_allowed_passes() -> None:
    check_answer(EMPTY_TOPIC * 4, METADATA, bounds(4))


def test_message_with_one_element_too_many_is_refused() -> None:
    assert refused(EMPTY_TOPIC * 5, bounds(4)) == "has more than 4 elements"


def test_message_over_its_size_is_refused_before_the_scan() -> None:
    assert refused(bytes(11), bounds(size=10)) == "has 11 bytes, more than 10"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_data_may_have_any_form(kind: type[bytes | bytearray | memoryview]) -> None:
    check_answer(kind(EMPTY_TOPIC * 4), METADATA, bounds(4))


def test_elements_of_all_levels_count() -> None:
    partitions = [cluster.Partition(index=1, leader_id=2) for _ in range(3)]
    answer = cluster.MetadataResponse(topics=[cluster.Topic(partitions=partitions)])
    check(answer, bounds(1 + 3 + 6))
    with pytest.raises(ScanError):
        check(answer, bounds(1 + 3 + 5))


def test_map_entries_count() -> None:
    answer = cluster.MetadataResponse(topics=[cluster.Topic(configs={"a": "b", "c": "d"})])
    check(answer, bounds(1 + 2 * 3))
    with pytest.raises(ScanError):
        check(answer, bounds(2 * 3))


def test_numbers_of_packed_lists_count() -> None:
    named = participants.TopicPartitions(partitions=[1, 300, -1])
    check(named, bounds(1 + 3))
    with pytest.raises(ScanError):
        check(named, bounds(3))


def test_bytes_that_are_one_value_are_one_element() -> None:
    answer = broker.FetchResponse(
        partitions=[
            broker.FetchPartitionResult(batches=[records.RecordBatch(payload=bytes(10_000))])
        ]
    )
    check(answer, bounds(3))


@pytest.mark.parametrize("levels", [1, 3, 4, 1_000_000])
def test_groups_which_no_contract_has_are_refused_at_any_depth(levels: int) -> None:
    open_group, close_group = b"\xfb\x01", b"\xfc\x01"
    data = open_group * levels + close_group * levels
    assert refused(data, bounds(3, size=1 << 23)) == "has a field of the wire type 3"


@pytest.mark.parametrize(
    "data",
    [
        b"\x2a\x05\x0a",  # a topic longer than the message
        b"\x2a\x02\x0a\x05" + bytes(5),  # a name longer than its topic
        b"\x08\xff\xff\xff",  # a number without its end
        b"\x2a\x02\x12\x80" + bytes(9),  # a length without its end within the topic
        b"\xfb\x01\x08\x01\x08\x01",  # a group without its end
        b"\xfc\x01" * 3,  # the end of no group
        b"\x08" + b"\xff" * 12,  # a number without end
        b"\x0f" * 6,  # wire type 7
        b"\x09" + bytes(3),  # half a fixed number
    ],
)
def test_malformed_message_is_refused(data: bytes) -> None:
    refused(data, bounds(2))
    with pytest.raises(DecodeError):
        cluster.MetadataResponse.FromString(data)


def test_hostile_tag_is_skipped_as_protobuf_does() -> None:
    data = varint(15_000 << 3) + b"\x01" + varint(15_001 << 3 | 2) + b"\x03abc"
    check_answer(data, METADATA, bounds(2))
    assert not cluster.MetadataResponse.FromString(data).ListFields()


def test_no_message_of_the_contracts_holds_its_own_type() -> None:
    """Small messages are not scanned: their levels are bounded because types are not recursive."""
    for method in vars(methods).values():
        if isinstance(method, methods.Method):
            assert _levels(cast("Descriptor", method.request.DESCRIPTOR)) <= 16
            assert _levels(cast("Descriptor", method.response.DESCRIPTOR)) <= 16


def _levels(descriptor: Descriptor, seen: frozenset[str] = frozenset()) -> int:
    assert descriptor.full_name not in seen
    within = {field.message_type for field in descriptor.fields if field.message_type is not None}
    return 1 + max((_levels(each, seen | {descriptor.full_name}) for each in within), default=0)
