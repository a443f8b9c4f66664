"""Messages that cost much for their size, made from the contract of a method."""

from collections.abc import Iterator
from typing import NamedTuple, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from semel_common.wire.messages.request_bounds import BOUNDS, MESSAGE_SIZE_MAX_BYTES
from semel_common.wire.messages.request_scan import SCANNED_FROM_BYTES
from semel_common.wire.messages.wire_format import varint

_ROOM_BYTES = 4_096
"""The part of a message's largest size that the frame around it may take."""
_UNKNOWN_FIELD = b"\xa0\x3f\0"
"""Number 1012, which no contract has."""


class Costly(NamedTuple):
    """One message."""

    what: str
    content: bytes


def costly_messages(request: type[Message]) -> Iterator[Costly]:
    """Yield messages of one type."""
    yield Costly("unknown fields, the largest message", _filled(_UNKNOWN_FIELD, _largest()))
    for path in _repeated(cast("Descriptor", request.DESCRIPTOR), ()):
        field = path[-1]
        name = ".".join(each.name for each in path)
        entry = _entry(field)
        count = min(BOUNDS[field.full_name].count_max, _largest() // len(entry))
        yield Costly(f"{count:,} empty {name}", _within(path, entry * count))
        small = _filled(entry, SCANNED_FROM_BYTES - 64)
        yield Costly(f"{len(small) // len(entry):,} empty {name}", _within(path, small))
        large = _filled(entry, _largest())
        yield Costly(f"{len(large) // len(entry):,} empty {name}", _within(path, large))


def in_frame(number: int, content: bytes) -> bytes:
    """Return a message of a stream with one frame; ``number`` is that of the request's field."""
    request = b"\x08\x01" + _delimited(number, content)
    return _delimited(1, request)


def _repeated(
    descriptor: Descriptor, above: tuple[FieldDescriptor, ...]
) -> Iterator[tuple[FieldDescriptor, ...]]:
    for field in descriptor.fields:
        if field.is_repeated:
            yield (*above, field)
        if field.message_type is not None:
            yield from _repeated(field.message_type, (*above, field))


def _entry(field: FieldDescriptor) -> bytes:
    """Return the shortest entry of a field; numbers are packed, one byte for each."""
    delimited = (field.TYPE_MESSAGE, field.TYPE_STRING, field.TYPE_BYTES)
    return _delimited(field.number, b"") if field.type in delimited else b"\x01"


def _within(path: tuple[FieldDescriptor, ...], entries: bytes) -> bytes:
    """Return a message that has entries at the end of a path, and one of all else on the way."""
    *way, last = path
    if len(_entry(last)) == 1:
        entries = _delimited(last.number, entries)
    for field in reversed(way):
        entries = _delimited(field.number, entries)
    return entries


def _delimited(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def _filled(entry: bytes, size_bytes: int) -> bytes:
    return entry * (size_bytes // len(entry))


def _largest() -> int:
    return MESSAGE_SIZE_MAX_BYTES - _ROOM_BYTES
