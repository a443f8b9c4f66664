"""Protobuf's wire format, written by hand: messages that no library would write."""

_LENGTH_DELIMITED = 2


def varint(value: int) -> bytes:
    """Return a number as protobuf writes it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def length_delimited(field: int, content: bytes) -> bytes:
    """Return a field of bytes, text or a message."""
    return varint(field << 3 | _LENGTH_DELIMITED) + varint(len(content)) + content
