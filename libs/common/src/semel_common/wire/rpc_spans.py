"""Spans of RPCs by OpenTelemetry's conventions, for both ends of a call, unary or in a frame.

Written here rather than taken from the contributed interceptors: those know nothing of frames, use
the names of older conventions, and lose the status of rich errors.
"""

from functools import cache
from typing import TypeAlias

import grpc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from opentelemetry.trace import Span, StatusCode

from semel_common.errors import SemelError
from semel_common.wire.methods import Method
from semel_common.wire.status import status_code_of

Attributes: TypeAlias = dict[str, str | int | bool]

_SERVER_FAULTS = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""What a server's span calls an error; to the client's, every status but OK is one."""

_NAMES = {
    "transactional_id": "semel.transactional_id",
    "producer_id": "semel.producer_id",
    "producer_epoch": "semel.producer_epoch",
    "group_id": "messaging.consumer.group.name",
}
"""Common fields of requests, and their names in spans."""


def span_name(method: Method[Message, Message]) -> str:
    """Return what a call's span is called: the method in full."""
    return method.path[1:]


def call_attributes(method: Method[Message, Message]) -> Attributes:
    """Return what is said of every call."""
    return {"rpc.system.name": "grpc", "rpc.method": span_name(method)}


def request_attributes(method: Method[Message, Message], request: Message) -> Attributes:
    """Return what a server says of a call: also whom the request is about."""
    attributes = call_attributes(method)
    for field, name in _known_fields(method.request.DESCRIPTOR):
        value = getattr(request, field)
        if value:
            attributes[name] = value
    return attributes


def address_attributes(address: str) -> Attributes:
    """Return where a client calls."""
    host, _, port = address.rpartition(":")
    return {"server.address": host.strip("[]"), "server.port": int(port)}


def succeeded(span: Span) -> None:
    """Note that a call was answered."""
    span.set_attribute("rpc.response.status_code", "OK")


def failed(span: Span, error: SemelError, *, server: bool = False) -> None:
    """Note how a call failed: gRPC's status, and the protocol's reason."""
    code = status_code_of(error)
    span.set_attributes(
        {
            "rpc.response.status_code": code.name,
            "error.type": code.name,
            "semel.error": error.code.name,
        }
    )
    if not server or code in _SERVER_FAULTS:
        span.set_status(StatusCode.ERROR, error.message)


def cancelled(span: Span) -> None:
    """Note that the caller has cancelled the call."""
    name = grpc.StatusCode.CANCELLED.name
    span.set_attributes({"rpc.response.status_code": name, "error.type": name})


@cache
def _known_fields(request: Descriptor) -> tuple[tuple[str, str], ...]:
    names = request.fields_by_name
    return tuple((field, name) for field, name in _NAMES.items() if field in names)
