"""The messages of each service's frame stream, found by the service's name."""

from collections.abc import Callable
from dataclasses import dataclass

from semel.broker.v1 import broker_pb2 as broker
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire.methods import BROKER, GROUP, TRANSACTIONS

RequestFrame = broker.RequestFrame | transactions.RequestFrame | group.RequestFrame
ResponseFrame = broker.ResponseFrame | transactions.ResponseFrame | group.ResponseFrame
StreamRequest = broker.StreamRequest | transactions.StreamRequest | group.StreamRequest
StreamResponse = broker.StreamResponse | transactions.StreamResponse | group.StreamResponse


@dataclass(frozen=True, slots=True)
class StreamTypes:
    """Constructors and parsers of one stream's messages."""

    path: str
    request_frame: Callable[..., RequestFrame]
    response_frame: Callable[..., ResponseFrame]
    stream_request: Callable[..., StreamRequest]
    stream_response: Callable[..., StreamResponse]
    parse_request: Callable[[bytes], StreamRequest]
    parse_response: Callable[[bytes], StreamResponse]


STREAMS: dict[str, StreamTypes] = {
    BROKER: StreamTypes(
        f"/{BROKER}/Stream",
        broker.RequestFrame,
        broker.ResponseFrame,
        broker.StreamRequest,
        broker.StreamResponse,
        broker.StreamRequest.FromString,
        broker.StreamResponse.FromString,
    ),
    TRANSACTIONS: StreamTypes(
        f"/{TRANSACTIONS}/Stream",
        transactions.RequestFrame,
        transactions.ResponseFrame,
        transactions.StreamRequest,
        transactions.StreamResponse,
        transactions.StreamRequest.FromString,
        transactions.StreamResponse.FromString,
    ),
    GROUP: StreamTypes(
        f"/{GROUP}/Stream",
        group.RequestFrame,
        group.ResponseFrame,
        group.StreamRequest,
        group.StreamResponse,
        group.StreamRequest.FromString,
        group.StreamResponse.FromString,
    ),
}
