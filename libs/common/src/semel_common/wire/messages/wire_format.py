"""Protobuf's wire format: numbers, tags and fields, read and written by hand. Pure.

A reader that meets the end of the data within a number raises WireFormatError. A value that is cut
off ends behind the data: the caller compares the ends.
"""

from typing import TypeAlias

Data: TypeAlias = bytes | bytearray | memoryview

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
"""The wire types. Groups (3, 4) are malformed here: no contract has any."""
WIRE_TYPE = 0x07
"""The bits of a tag that are its wire type; the other bits are the number of the field."""
CONTINUED = 0x80
"""The bit that each byte of a number has, except its last byte."""
_CONTINUED_BYTES = bytes(range(CONTINUED, 256))
_VARINT_MAX_BYTES = 10


class WireFormatError(ValueError):
    """The bytes are no message. The text is a predicate: ``ends within a number``."""


def varint(number: int) -> bytes:
    """Write a number as protobuf does."""
    if number < CONTINUED:
        return bytes((number,))
    digits = bytearray()
    while number >= CONTINUED:
        digits.append(number & 0x7F | CONTINUED)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def read_varint(data: Data, at: int) -> tuple[int, int]:
    """Return a number and its end; most numbers have one byte."""
    if at < len(data) and data[at] < CONTINUED:
        return data[at], at + 1
    value = shift = 0
    for byte in data[at : at + _VARINT_MAX_BYTES]:
        at += 1
        value |= (byte & ~CONTINUED) << shift
        if byte < CONTINUED:
            return value, at
        shift += 7
    if shift == 7 * _VARINT_MAX_BYTES:
        raise WireFormatError(f"has a number of more than {_VARINT_MAX_BYTES} bytes")
    raise WireFormatError("ends within a number")


def skip_value(data: Data, at: int, tag: int) -> int:
    """Return the end of the value behind a tag."""
    wire_type = tag & WIRE_TYPE
    if wire_type == VARINT:
        return read_varint(data, at)[1]
    if wire_type == LENGTH_DELIMITED:
        length, at = read_varint(data, at)
        return at + length
    if wire_type == FIXED32:
        return at + 4
    if wire_type == FIXED64:
        return at + 8
    raise WireFormatError(f"has a field of the wire type {wire_type}")


def packed_count(packed: Data, fixed_bytes: int) -> int:
    """Return how many numbers a packed list has, of ``fixed_bytes`` each; 0: they are varints."""
    if fixed_bytes:
        return len(packed) // fixed_bytes
    return len(bytes(packed).translate(None, _CONTINUED_BYTES))
