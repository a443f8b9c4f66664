"""Looks through the bytes of a large message before it is parsed.

A message of a few bytes for each entry becomes objects of many times its size. The scan counts
entries by ``request_bounds`` and makes no object for any. It ends at the first entry that is too
many: it costs no more than the bounds allow, however large the message is.

Small messages are not scanned: what can be made of them is small, and services check their counts.
"""

from functools import cache
from typing import NamedTuple, TypeAlias, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.message_scan import (
    BoundError,
    MessageScan,
    ScanError,
    Shape,
    shape_of,
)
from semel_common.wire.messages.request_bounds import BOUNDS, FIELDS_MAX, FRAMES_MAX
from semel_common.wire.messages.wire_format import (
    CONTINUED,
    LENGTH_DELIMITED,
    VARINT,
    WireFormatError,
    read_varint,
    skip_value,
)

SCANNED_FROM_BYTES = 16 << 10
"""A smaller message is parsed at once: it has 8,192 entries at most."""
_SCANNED_FRAME_BYTES = 4 << 10
UNSCANNED_MAX_BYTES = 1 << 20
"""Of small frames, so many bytes of one message are not scanned: they have as many entries at most
as a scanned message may have fields."""

Bytes: TypeAlias = bytes | bytearray

_FRAME = 1 << 3 | LENGTH_DELIMITED
_CORRELATION_ID = 1 << 3 | VARINT


class Span(NamedTuple):
    """Where a frame stands in a message."""

    start: int
    end: int


def check_request(request: type[Message], message: Bytes) -> None:
    """Raise InvalidRequestError for a message that holds more than its fields may."""
    if len(message) >= SCANNED_FROM_BYTES:
        descriptor = cast("Descriptor", request.DESCRIPTOR)  # The stubs name another class too.
        _check_message(descriptor, message, Span(0, len(message)), MessageScan(FIELDS_MAX))


def refused_frames(
    descriptor: Descriptor, message: Bytes, spans: list[Span]
) -> dict[Span, InvalidRequestError]:
    """Return which frames of a message hold more than their fields may, and why."""
    refused: dict[Span, InvalidRequestError] = {}
    scan = MessageScan(FIELDS_MAX)
    unscanned_bytes = UNSCANNED_MAX_BYTES
    for span in spans:
        size = span[1] - span[0]
        if size < _SCANNED_FRAME_BYTES and size <= unscanned_bytes:
            unscanned_bytes -= size
            continue
        try:
            _check_message(descriptor, message, span, scan)
        except InvalidRequestError as error:
            refused[span] = error.as_value()
    return refused


def frames_of(descriptor: Descriptor, message: Bytes) -> list[Span]:
    """Return where the frames of a message of a stream stand. Raises InvalidRequestError."""
    spans: list[Span] = []
    at, end = 0, len(message)
    try:
        while at < end:
            if message[at] != _FRAME:
                tag, at = read_varint(message, at)
                at = skip_value(message, at, tag)
                continue
            size = message[at + 1]
            at += 2
            if size >= CONTINUED:
                size, at = read_varint(message, at - 1)
            spans.append(Span(at, at + size))
            at += size
            if len(spans) > FRAMES_MAX:
                raise InvalidRequestError(
                    f"a message of {end:,} bytes has more than {FRAMES_MAX:,} frames: send several"
                )
    except (IndexError, WireFormatError):
        at = -1
    if at != end:
        raise InvalidRequestError(f"the message of {end:,} bytes is no {descriptor.name}")
    return spans


def correlation_id_of(message: Bytes, span: Span) -> int:
    """Return the first field of a frame, which says whose it is; 0 if it does not begin with it."""
    try:
        tag, at = read_varint(message, span.start)
        return read_varint(message, at)[0] if tag == _CORRELATION_ID else 0
    except WireFormatError:
        return 0


def _check_message(descriptor: Descriptor, message: Bytes, span: Span, scan: MessageScan) -> None:
    try:
        scan.check(message, _shape(descriptor), *span)
    except BoundError as error:
        raise _too_much(error, len(message)) from None
    except ScanError:
        size = span.end - span.start
        raise InvalidRequestError(
            f"the message of {size:,} bytes is no {descriptor.name}"
        ) from None


def _too_much(error: BoundError, message_bytes: int) -> InvalidRequestError:
    if not error.field:
        return InvalidRequestError(
            f"the message of {message_bytes:,} bytes has more than {FIELDS_MAX:,} fields:"
            " send several requests"
        )
    advice = ": send several requests" if error.is_count else ""
    return InvalidRequestError(f"{error.field} {error}{advice}", field=error.field)


@cache
def _shape(descriptor: Descriptor) -> Shape:
    return shape_of(descriptor, BOUNDS.get)
