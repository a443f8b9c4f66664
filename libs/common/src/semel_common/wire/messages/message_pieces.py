"""Messages that are written already, in pieces, as protobuf would write them whole.

To put bytes into a message copies them, and to serialize it does once more. A large field that is a
piece of its own is copied once, when all pieces of all that is sent together are joined.
"""

from dataclasses import dataclass
from typing import Generic, TypeAlias

from google.protobuf.message import Message

from semel_common.wire.messages.wire_format import LENGTH_DELIMITED, varint
from semel_common.wire.methods import Method, Req, Res

Pieces: TypeAlias = tuple[bytes, ...]
"""They are one message, one after the other."""


@dataclass(frozen=True, slots=True)
class Written(Generic[Req]):
    """A message as it goes out."""

    pieces: Pieces

    def SerializeToString(self) -> bytes:  # noqa: N802 - as messages have it
        """Return the bytes as one, for code that does not need pieces."""
        return b"".join(self.pieces)


Outgoing: TypeAlias = Req | Written[Req]
"""What a caller has to send."""


def pieces_of(outgoing: Outgoing[Req]) -> Pieces:
    """Return the pieces of an outgoing message; a plain message is one piece."""
    if isinstance(outgoing, Written):
        return outgoing.pieces
    return (outgoing.SerializeToString(),)


def message_of(method: Method[Req, Res], outgoing: Outgoing[Req]) -> Req:
    """Return the message that is to be sent; one that is written is read again."""
    if isinstance(outgoing, Written):
        return method.request.FromString(outgoing.SerializeToString())
    return outgoing


def within(field: bytes, content: Pieces) -> Pieces:
    """Return content as one field of a message; ``field`` is its tag."""
    return (field + varint(sum(map(len, content))), *content)


def tag(of: type[Message], field: str) -> bytes:
    """Return how a field begins that is a message, or bytes."""
    return varint(of.DESCRIPTOR.fields_by_name[field].number << 3 | LENGTH_DELIMITED)
