"""Bounds on a message, checked on its bytes before protobuf makes objects of them.

An empty message in a list takes two bytes on the wire and more than a hundred in memory, so the
size of a message does not bound what it costs. The scan walks the wire format by descriptor, makes
no objects, and stops at the first bound. Its cost is bounded by ``Bounds.elements_max``.
"""

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

Data: TypeAlias = bytes | bytearray | memoryview

_LENGTH_DELIMITED, _START_GROUP, _END_GROUP = 2, 3, 4
_WIRE_TYPE = 0x07
_CONTINUED = 0x80
_CONTINUED_DIGITS = bytes(range(_CONTINUED, 256))
_VARINT_BITS_MAX = 70
_VARINTS = 0
_FIXED_BYTES = {
    FieldDescriptor.TYPE_FIXED64: 8,
    FieldDescriptor.TYPE_SFIXED64: 8,
    FieldDescriptor.TYPE_DOUBLE: 8,
    FieldDescriptor.TYPE_FIXED32: 4,
    FieldDescriptor.TYPE_SFIXED32: 4,
    FieldDescriptor.TYPE_FLOAT: 4,
}
_CUT_OFF = "ends in the middle of a field"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a message may hold."""

    size_max_bytes: int
    """Its bytes on the wire."""
    elements_max: int
    """Fields on the wire, at all levels, and numbers in packed lists. An element that is a message
    takes up to some 300 bytes of memory."""
    depth_max: int = 32
    """Messages within messages."""


class MessageBoundsError(ValueError):
    """A message is over a bound, or malformed. The text is a predicate: ``has more than …``."""


def check_bounds(data: Data, of: type[Message], bounds: Bounds) -> None:
    """Raise MessageBoundsError if a message of this type is over a bound.

    An element takes at least one byte, so a message of at most ``elements_max`` bytes is not
    scanned. Only a scanned message is checked for its depth and form: protobuf itself refuses more
    than 100 levels, and malformed bytes.
    """
    if len(data) > bounds.size_max_bytes:
        raise MessageBoundsError(f"has {len(data):,} bytes, more than {bounds.size_max_bytes:,}")
    if len(data) <= bounds.elements_max:
        return
    try:
        _walk(data, _kind_of(cast("Descriptor", of.DESCRIPTOR)), bounds)
    except IndexError:
        raise MessageBoundsError(_CUT_OFF) from None


@dataclass(frozen=True, slots=True)
class _Kind:
    """How the fields of one type of message are walked."""

    messages: dict[int, Descriptor]
    """The fields that are messages, by tag."""
    packed: dict[int, int]
    """The lists of numbers, by the tag of their packed form: the bytes of a number, or _VARINTS."""


_GROUP = _Kind({}, {})
"""A group: no message of the contracts has one, so all its fields are unknown."""


@cache
def _kind_of(descriptor: Descriptor) -> _Kind:
    kind = _Kind({}, {})
    for field in descriptor.fields:
        tag = field.number << 3 | _LENGTH_DELIMITED
        if field.message_type is not None:
            kind.messages[tag] = field.message_type
        elif field.is_repeated and field.cpp_type != FieldDescriptor.CPPTYPE_STRING:
            kind.packed[tag] = _FIXED_BYTES.get(field.type, _VARINTS)
    return kind


def _walk(data: Data, kind: _Kind, bounds: Bounds) -> None:
    """Walk all fields; raises MessageBoundsError, or IndexError where the bytes end too early."""
    at, end, elements = 0, len(data), 0
    outer: list[tuple[int, _Kind]] = []
    while at < end or outer:
        if at == end and kind is not _GROUP:
            end, kind = outer.pop()
            continue
        elements += 1
        tag, at = _varint(data, at)
        wire_type = tag & _WIRE_TYPE
        if wire_type == _LENGTH_DELIMITED:
            length, at = _varint(data, at)
            if tag in kind.messages:
                outer.append((end, kind))
                if at + length > end:
                    raise MessageBoundsError(_CUT_OFF)
                end, kind = at + length, _kind_of(kind.messages[tag])
            elif tag in kind.packed:
                elements += _numbers(data[at : at + length], kind.packed[tag])
                at += length
            else:
                at += length
        elif wire_type == _START_GROUP:
            outer.append((end, kind))
            kind = _GROUP
        elif wire_type == _END_GROUP and kind is _GROUP:
            end, kind = outer.pop()
        else:
            at = _past_number(data, at, wire_type)
        if elements > bounds.elements_max or len(outer) > bounds.depth_max or at > end:
            raise _error(elements, len(outer), bounds)


def _error(elements: int, depth: int, bounds: Bounds) -> MessageBoundsError:
    if elements > bounds.elements_max:
        return MessageBoundsError(f"has more than {bounds.elements_max:,} elements")
    if depth > bounds.depth_max:
        return MessageBoundsError(f"has more than {bounds.depth_max} levels")
    return MessageBoundsError(_CUT_OFF)


def _varint(data: Data, at: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    value = data[at]
    at += 1
    if value < _CONTINUED:
        return value, at
    value &= ~_CONTINUED
    for shift in range(7, _VARINT_BITS_MAX, 7):
        digit = data[at]
        at += 1
        value |= (digit & ~_CONTINUED) << shift
        if digit < _CONTINUED:
            return value, at
    raise MessageBoundsError("has a number of more than ten bytes")


def _past_number(data: Data, at: int, wire_type: int) -> int:
    """Return where the value of a field ends that is a single number."""
    match wire_type:
        case 0:
            return _varint(data, at)[1]
        case 1:
            return at + 8
        case 5:
            return at + 4
        case _:
            raise MessageBoundsError(f"has a field of the unknown wire type {wire_type}")


def _numbers(packed: Data, fixed_bytes: int) -> int:
    """Return how many numbers are in a packed list."""
    if fixed_bytes:
        return len(packed) // fixed_bytes
    return len(bytes(packed).translate(None, _CONTINUED_DIGITS))
