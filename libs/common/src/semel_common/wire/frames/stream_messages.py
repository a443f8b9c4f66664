"""The messages of each service's frame stream: parsed as usual, written without copies.

A large message is looked through before it is parsed: see ``request_scan``.

A frame is written in pieces: its few fixed fields, then the request or response, serialized once,
as the field that it is. Messages of several frames are those pieces one after the other: that is
how protobuf writes a repeated field. Making the messages and serializing them would give the same
bytes, and copy every payload twice more.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

from google.protobuf.message import Message

from semel.broker.v1 import broker_pb2 as broker
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.message_pieces import Outgoing, Pieces, pieces_of, tag, within
from semel_common.wire.messages.request_scan import (
    SCANNED_FROM_BYTES,
    correlation_id_of,
    frames_of,
    refused_frames,
)
from semel_common.wire.methods import BROKER, GROUP, TRANSACTIONS, Req

RequestFrame = broker.RequestFrame | transactions.RequestFrame | group.RequestFrame
ResponseFrame = broker.ResponseFrame | transactions.ResponseFrame | group.ResponseFrame
StreamRequest = broker.StreamRequest | transactions.StreamRequest | group.StreamRequest
StreamResponse = broker.StreamResponse | transactions.StreamResponse | group.StreamResponse
M = TypeVar("M", bound=Message)


class RefusedFrame(NamedTuple):
    """A frame that was not parsed."""

    correlation_id: int
    error: InvalidRequestError


@dataclass(frozen=True, slots=True)
class StreamTypes:
    """How one stream's messages are read and written."""

    path: str
    """Of the RPC, as gRPC writes it."""
    stream_request: type[StreamRequest]
    stream_response: type[StreamResponse]
    parse_request: Callable[[bytes | bytearray], StreamRequest]
    parse_response: Callable[[bytes | bytearray], StreamResponse]
    request_frame: type[broker.RequestFrame | transactions.RequestFrame | group.RequestFrame]
    response_frame: Callable[..., ResponseFrame]
    request_tags: dict[str, bytes]
    """How the field of each request begins, by the field's name."""
    response_tags: dict[str, bytes]

    def read_requests(self, message: bytes | bytearray) -> Sequence[RequestFrame | RefusedFrame]:
        """Return the frames of a message; one that holds too much is refused, and never parsed.

        Raises DecodeError, and InvalidRequestError for too many frames.
        """
        if len(message) < SCANNED_FROM_BYTES:
            return self.parse_request(message).frames
        spans = frames_of(self.stream_request.DESCRIPTOR, message)
        refused = refused_frames(self.request_frame.DESCRIPTOR, message, spans)
        if not refused:
            return self.parse_request(message).frames
        return [
            RefusedFrame(correlation_id_of(message, span), refused[span])
            if span in refused
            else self.request_frame.FromString(bytes(message[span.start : span.end]))
            for span in spans
        ]

    def write_request(
        self,
        correlation_id: int,
        timeout_ms: int,
        field: str,
        request: Outgoing[Req],
        traceparent: str = "",
    ) -> Pieces:
        """Write a request as an element of ``StreamRequest.frames``."""
        fixed = self.request_frame(
            correlation_id=correlation_id, timeout_ms=timeout_ms, traceparent=traceparent
        )
        return _frame(fixed, self.request_tags[field], pieces_of(request))

    def write_response(self, correlation_id: int, field: str, response: Message) -> bytes:
        """Write an answer as an element of ``StreamResponse.frames``."""
        fixed = self.response_frame(correlation_id=correlation_id)
        return join(_frame(fixed, self.response_tags[field], pieces_of(response)))


def join(pieces: Iterable[bytes]) -> bytes:
    """Return the message that consists of the pieces of frames."""
    return b"".join(pieces)


def _parser(of: type[M]) -> Callable[[bytes | bytearray], M]:
    """Return what parses this type: protobuf takes a bytearray too, though its stubs do not say."""
    return cast("Callable[[bytes | bytearray], M]", of.FromString)


def _frame(fixed: Message, field: bytes, content: Pieces) -> Pieces:
    return within(_FRAMES_TAG, (fixed.SerializeToString(), *within(field, content)))


def _tags(frame: type[Message]) -> dict[str, bytes]:
    """Return the tags of a frame's fields that are messages."""
    return {
        field.name: tag(frame, field.name)
        for field in frame.DESCRIPTOR.fields
        if field.message_type
    }


_FRAMES_TAG = tag(broker.StreamRequest, "frames")

STREAMS: dict[str, StreamTypes] = {
    BROKER: StreamTypes(
        f"/{BROKER}/Stream",
        broker.StreamRequest,
        broker.StreamResponse,
        _parser(broker.StreamRequest),
        _parser(broker.StreamResponse),
        broker.RequestFrame,
        broker.ResponseFrame,
        _tags(broker.RequestFrame),
        _tags(broker.ResponseFrame),
    ),
    TRANSACTIONS: StreamTypes(
        f"/{TRANSACTIONS}/Stream",
        transactions.StreamRequest,
        transactions.StreamResponse,
        _parser(transactions.StreamRequest),
        _parser(transactions.StreamResponse),
        transactions.RequestFrame,
        transactions.ResponseFrame,
        _tags(transactions.RequestFrame),
        _tags(transactions.ResponseFrame),
    ),
    GROUP: StreamTypes(
        f"/{GROUP}/Stream",
        group.StreamRequest,
        group.StreamResponse,
        _parser(group.StreamRequest),
        _parser(group.StreamResponse),
        group.RequestFrame,
        group.ResponseFrame,
        _tags(group.RequestFrame),
        _tags(group.ResponseFrame),
    ),
}
"""By the name of the service."""
