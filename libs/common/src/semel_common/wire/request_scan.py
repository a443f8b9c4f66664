"""Looks through the bytes of a large message before it is parsed.

A message of a few bytes for each entry becomes objects of many times its size. The scan counts
entries by ``bounds`` and makes no object for any. It ends at the first entry that is too many: it
costs no more than the bounds allow, however large the message is.

Small messages are not scanned: what can be made of them is small, and services check their counts.
"""

import sys
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, TypeAlias, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from semel_common.errors import InvalidRequestError
from semel_common.wire.bounds import BOUNDS, FIELDS_MAX, FRAMES_MAX, Bound

SCANNED_FROM_BYTES = 16 << 10
"""A smaller message is parsed at once: it has 8,192 entries at most."""
_SCANNED_FRAME_BYTES = 4 << 10
UNSCANNED_MAX_BYTES = 1 << 20
"""Of small frames, so many bytes of one message are not scanned: they have as many entries at most
as a scanned message may have fields."""

Bytes: TypeAlias = bytes | bytearray

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_FRAME = 1 << 3 | _DELIMITED
_CONTINUED = 0x80
_VARINT_BYTES_MAX = 10
_ENDS_NO_VARINT = bytes(range(_CONTINUED, 256))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """A field that is held against its bound."""

    name: str
    count_max: int
    size_max_bytes: int
    is_counted: bool
    is_packed: bool
    content: "_Shape | None"
    """Of a message."""


_Shape: TypeAlias = dict[int, _Field]
"""The fields of a message that are looked at, by the number that stands before each on the wire."""


class Span(NamedTuple):
    """Where a frame stands in a message."""

    start: int
    end: int


class _MalformedError(ValueError):
    """The bytes are no message."""


@dataclass(slots=True)
class _Budget:
    """What is left for the rest of a message."""

    fields_left: int = FIELDS_MAX
    counts: dict[str, int] = field(default_factory=dict)


def check_request(request: type[Message], message: Bytes) -> None:
    """Raise InvalidRequestError for a message that holds more than its fields may."""
    if len(message) >= SCANNED_FROM_BYTES:
        descriptor = cast("Descriptor", request.DESCRIPTOR)  # The stubs name another class too.
        _check_message(descriptor, message, Span(0, len(message)), _Budget())


def refused_frames(
    descriptor: Descriptor, message: Bytes, spans: list[Span]
) -> dict[Span, InvalidRequestError]:
    """Return which frames of a message hold more than their fields may, and why."""
    refused: dict[Span, InvalidRequestError] = {}
    budget = _Budget()
    unscanned_bytes = UNSCANNED_MAX_BYTES
    for span in spans:
        size = span[1] - span[0]
        if size < _SCANNED_FRAME_BYTES and size <= unscanned_bytes:
            unscanned_bytes -= size
            continue
        budget.counts = {}
        try:
            _check_message(descriptor, message, span, budget)
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
                number, at = _varint(message, at)
                at = _skip(message, number, at)
                continue
            size = message[at + 1]
            at += 2
            if size >= _CONTINUED:
                size, at = _varint(message, at - 1)
            spans.append(Span(at, at + size))
            at += size
            if len(spans) > FRAMES_MAX:
                raise InvalidRequestError(
                    f"a message of {end:,} bytes has more than {FRAMES_MAX:,} frames: send several"
                )
    except (IndexError, _MalformedError):
        at = -1
    if at != end:
        raise InvalidRequestError(f"the message of {end:,} bytes is no {descriptor.name}")
    return spans


def correlation_id_of(message: Bytes, span: Span) -> int:
    """Return the first field of a frame, which says whose it is; 0 if it does not begin with it."""
    try:
        number, at = _varint(message, span.start)
        return _varint(message, at)[0] if number == 1 << 3 else 0
    except (IndexError, _MalformedError):
        return 0


def _check_message(descriptor: Descriptor, message: Bytes, span: Span, budget: _Budget) -> None:
    try:
        _scan(message, span, _shape(descriptor), budget)
    except (IndexError, _MalformedError):
        size = span.end - span.start
        raise InvalidRequestError(
            f"the message of {size:,} bytes is no {descriptor.name}"
        ) from None


def _scan(message: Bytes, span: Span, shape: _Shape, budget: _Budget) -> None:
    """Go over the fields of a message, and of the messages in it."""
    at, end = span
    left = budget.fields_left
    while at < end:
        number = message[at]
        at += 1
        if number >= _CONTINUED:
            number, at = _varint(message, at - 1)
        left -= 1
        if left < 0:
            raise InvalidRequestError(
                f"the message of {len(message):,} bytes has more than {FIELDS_MAX:,} fields:"
                " send several requests"
            )
        known = shape.get(number)
        if number & 7 != _DELIMITED:
            if known is not None:
                _count(known, 1, budget)
            at = _skip(message, number, at)
            continue
        size = message[at]
        at += 1
        if size >= _CONTINUED:
            size, at = _varint(message, at - 1)
        if known is not None:
            _check(known, message, Span(at, at + size), budget)
            if known.content is not None and size:
                budget.fields_left = left
                _scan(message, Span(at, at + size), known.content, budget)
                left = budget.fields_left
        at += size
    if at != end:
        raise _MalformedError
    budget.fields_left = left


def _check(known: _Field, message: Bytes, span: Span, budget: _Budget) -> None:
    size = span.end - span.start
    if size > known.size_max_bytes:
        raise InvalidRequestError(
            f"{known.name} has {size:,} bytes: at most {known.size_max_bytes:,}", field=known.name
        )
    if known.is_counted:
        _count(known, _entries(known, message, span), budget)


def _count(known: _Field, entries: int, budget: _Budget) -> None:
    count = budget.counts.get(known.name, 0) + entries
    if count > known.count_max:
        raise InvalidRequestError(
            f"{known.name} has more than {known.count_max:,} entries: send several requests",
            field=known.name,
        )
    budget.counts[known.name] = count


def _entries(known: _Field, message: Bytes, span: Span) -> int:
    """Return how many entries a field adds: of packed numbers, as many as bytes that end one."""
    if not known.is_packed:
        return 1
    return len(message[span.start : span.end].translate(None, _ENDS_NO_VARINT))


def _skip(message: Bytes, number: int, at: int) -> int:
    """Return where the content of a field ends."""
    kind = number & 7
    if kind == _VARINT:
        while message[at] >= _CONTINUED:
            at += 1
        return at + 1
    if kind == _FIXED64:
        return at + 8
    if kind == _FIXED32:
        return at + 4
    if kind == _DELIMITED:
        size, at = _varint(message, at)
        return at + size
    raise _MalformedError  # Groups: no contract has any.


def _varint(message: Bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    value = 0
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _CONTINUED:
            return value, at
    raise _MalformedError


@cache
def _shape(descriptor: Descriptor) -> _Shape:
    """Return the fields of a message that are bounded, or lead to some that are."""
    shape: _Shape = {}
    for each in descriptor.fields:
        if each.full_name in BOUNDS or each.message_type is not None:
            for number in _numbers(each):
                shape[number] = _field_of(each, is_packed=number & 7 == _DELIMITED)
    return shape


def _field_of(described: FieldDescriptor, *, is_packed: bool) -> _Field:
    is_number = described.type not in _NOT_PACKED
    bound = BOUNDS.get(described.full_name, Bound())
    return _Field(
        name=described.name,
        count_max=bound.count_max,
        size_max_bytes=sys.maxsize if bound.size_max_bytes is None else bound.size_max_bytes,
        is_counted=described.is_repeated,
        is_packed=is_number and is_packed,
        content=None if described.message_type is None else _shape(described.message_type),
    )


_NOT_PACKED = (
    FieldDescriptor.TYPE_STRING,
    FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_MESSAGE,
)


def _numbers(described: FieldDescriptor) -> tuple[int, ...]:
    """Return what stands before a field on the wire; numbers come one by one, or packed."""
    delimited = described.number << 3 | _DELIMITED
    if described.type in _NOT_PACKED:
        return (delimited,)
    return (described.number << 3 | _VARINT, delimited)
