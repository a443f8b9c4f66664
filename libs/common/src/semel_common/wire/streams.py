"""The messages of each service's frame stream: parsed as usual, written without copies.

A frame is written in pieces: its few fixed fields, then the request or response, serialized once,
as the field that it is. Messages of several frames are those pieces one after the other: that is
how protobuf writes a repeated field. Making the messages and serializing them would give the same
bytes, and copy every payload twice more.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from semel.broker.v1 import broker_pb2 as broker
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire.methods import BROKER, GROUP, TRANSACTIONS

RequestFrame = broker.RequestFrame | transactions.RequestFrame | group.RequestFrame
ResponseFrame = broker.ResponseFrame | transactions.ResponseFrame | group.ResponseFrame
StreamRequest = broker.StreamRequest | transactions.StreamRequest | group.StreamRequest
StreamResponse = broker.StreamResponse | transactions.StreamResponse | group.StreamResponse
M = TypeVar("M", bound=Message)

_LENGTH_DELIMITED = 2
_CONTINUED = 0x80


@dataclass(frozen=True, slots=True)
class StreamTypes:
    """How one stream's messages are read and written."""

    path: str
    """Of the RPC, as gRPC writes it."""
    parse_request: Callable[[bytes | bytearray], StreamRequest]
    parse_response: Callable[[bytes | bytearray], StreamResponse]
    request_frame: Callable[..., RequestFrame]
    response_frame: Callable[..., ResponseFrame]
    request_tags: dict[str, bytes]
    """How the field of each request begins, by the field's name."""
    response_tags: dict[str, bytes]

    def write_request(
        self,
        correlation_id: int,
        timeout_ms: int,
        field: str,
        request: Message,
        traceparent: str = "",
    ) -> bytes:
        """Write a request as an element of ``StreamRequest.frames``."""
        fixed = self.request_frame(
            correlation_id=correlation_id, timeout_ms=timeout_ms, traceparent=traceparent
        )
        return _frame(fixed, self.request_tags[field], request)

    def write_response(self, correlation_id: int, field: str, response: Message) -> bytes:
        """Write an answer as an element of ``StreamResponse.frames``."""
        fixed = self.response_frame(correlation_id=correlation_id)
        return _frame(fixed, self.response_tags[field], response)


def join(frames: Iterable[bytes]) -> bytes:
    """Return the message that consists of these frames."""
    return b"".join(frames)


def _parser(of: type[M]) -> Callable[[bytes | bytearray], M]:
    """Return what parses this type: protobuf takes a bytearray too, though its stubs do not say."""
    return cast("Callable[[bytes | bytearray], M]", of.FromString)


def _frame(fixed: Message, tag: bytes, content: Message) -> bytes:
    head, body = fixed.SerializeToString(), content.SerializeToString()
    size = _varint(len(body))
    total = len(head) + len(tag) + len(size) + len(body)
    return b"".join((_FRAMES_TAG, _varint(total), head, tag, size, body))


def _varint(number: int) -> bytes:
    if number < _CONTINUED:
        return bytes((number,))
    digits = bytearray()
    while number >= _CONTINUED:
        digits.append(number & 0x7F | _CONTINUED)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def _tag(number: int) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED)


def _tags(frame: Descriptor) -> dict[str, bytes]:
    """Return the tags of a frame's fields that are messages."""
    return {field.name: _tag(field.number) for field in frame.fields if field.message_type}


_FRAMES_TAG = _tag(broker.StreamRequest.FRAMES_FIELD_NUMBER)

STREAMS: dict[str, StreamTypes] = {
    BROKER: StreamTypes(
        f"/{BROKER}/Stream",
        _parser(broker.StreamRequest),
        _parser(broker.StreamResponse),
        broker.RequestFrame,
        broker.ResponseFrame,
        _tags(broker.RequestFrame.DESCRIPTOR),
        _tags(broker.ResponseFrame.DESCRIPTOR),
    ),
    TRANSACTIONS: StreamTypes(
        f"/{TRANSACTIONS}/Stream",
        _parser(transactions.StreamRequest),
        _parser(transactions.StreamResponse),
        transactions.RequestFrame,
        transactions.ResponseFrame,
        _tags(transactions.RequestFrame.DESCRIPTOR),
        _tags(transactions.ResponseFrame.DESCRIPTOR),
    ),
    GROUP: StreamTypes(
        f"/{GROUP}/Stream",
        _parser(group.StreamRequest),
        _parser(group.StreamResponse),
        group.RequestFrame,
        group.ResponseFrame,
        _tags(group.RequestFrame.DESCRIPTOR),
        _tags(group.ResponseFrame.DESCRIPTOR),
    ),
}
"""By the name of the service."""
