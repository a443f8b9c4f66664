"""Counts of fields in a serialized message, taken on its bytes before any object is made of them.

A scan costs what the fields that it passes cost, not their bytes, and stops at a bound. Pure.
"""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_VARINT_MAX_BYTES = 10
_MORE = 0x80
"""Set in every byte of a number but its last."""


class ScanError(ValueError):
    """The bytes are no message, or hold more than a bound allows."""


def check_fields(message: bytes, *, fields_max: int, number: int | None = None) -> None:
    """Raise ScanError when a message has more than ``fields_max`` fields.

    With a ``number``, only the fields of that number count towards the bound; all fields together
    may be four times as many, and a few more.
    """
    total_max = fields_max if number is None else 4 * fields_max + 64
    total = counted = at = 0
    end = len(message)
    while at < end:
        tag = message[at]
        if tag & 0x87 == _LENGTH and at + 2 < end and message[at + 1] & message[at + 2] < _MORE:
            # The usual field: its tag has one byte, its length one or two. A call takes longer.
            low = message[at + 1]
            at += 2 + low if low < _MORE else 3 + (low & ~_MORE) + (message[at + 2] << 7)
        else:
            tag, after = _varint(message, at)
            at = _skip(message, after, tag & 7)
        total += 1
        counted += number is None or tag >> 3 == number
        if counted > fields_max or total > total_max:
            raise ScanError(f"holds more than {fields_max} fields")
    if at != end:
        raise ScanError("ends within a field")


def _skip(message: bytes, at: int, wire_type: int) -> int:
    """Return where the value of a field ends."""
    if wire_type == _LENGTH:
        length, at = _varint(message, at)
        return at + length
    if wire_type == _VARINT:
        return _varint(message, at)[1]
    if wire_type in {_FIXED64, _FIXED32}:
        return at + (8 if wire_type == _FIXED64 else 4)
    raise ScanError(f"has a field of the wire type {wire_type}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a varint and where it ends; most have one byte."""
    if at < len(message) and message[at] < _MORE:
        return message[at], at + 1
    value = shift = 0
    for position in range(at, min(at + _VARINT_MAX_BYTES, len(message))):
        byte = message[position]
        value |= (byte & ~_MORE) << shift
        if byte < _MORE:
            return value, position + 1
        shift += 7
    raise ScanError("ends within a number, or has one that is too long")
