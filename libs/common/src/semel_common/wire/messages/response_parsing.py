"""From the bytes of an answer to its message: sizes first, then form.

Whether an answer fits its request is checked above this package, where requests are understood.
"""

from dataclasses import dataclass
from functools import cache
from typing import cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from semel_common.client_errors import InvalidResponseError
from semel_common.wire.messages.message_scan import (
    BoundError,
    ScanError,
    Shape,
    check_message,
    shape_of,
)
from semel_common.wire.messages.wire_format import Data
from semel_common.wire.methods import Method, Req, Res

ANSWER_SIZE_MAX_BYTES = 64 << 20
"""The largest answer: the metadata of a whole cluster is one, with all its access rules."""
ELEMENTS_MAX = 1 << 20
"""How many fields and numbers an answer may hold. In metadata, a partition of a topic takes 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBounds:
    """What an answer may hold."""

    size_max_bytes: int
    """Its bytes on the wire."""
    elements_max: int
    """Fields on the wire, at all levels, and numbers in packed lists. An element that is a message
    takes up to some 300 bytes of memory."""


def check_answer(data: Data, of: type[Message], bounds: AnswerBounds) -> None:
    """Raise ScanError if a message of this type exceeds a bound.

    An element takes at least one byte, so a message of at most ``elements_max`` bytes is not
    scanned. Only a scanned message is checked for its form: protobuf refuses malformed bytes.
    """
    if len(data) > bounds.size_max_bytes:
        raise BoundError(f"has {len(data):,} bytes, more than {bounds.size_max_bytes:,}")
    if len(data) > bounds.elements_max:
        shape = _shape(cast("Descriptor", of.DESCRIPTOR))  # The stubs name another class too.
        check_message(data, shape, elements_max=bounds.elements_max)


@cache
def _shape(descriptor: Descriptor) -> Shape:
    return shape_of(descriptor, lambda _: None)


def parse(
    method: Method[Req, Res], data: Data, address: str, bounds: AnswerBounds
) -> Res | InvalidResponseError:
    """Return the message of a unary answer, or why it is none.

    The error is returned: one that is raised here would keep the bytes for as long as it lives.
    """
    try:
        check_answer(data, method.response, bounds)
        return method.response.FromString(bytes(data))
    except (ScanError, DecodeError) as error:
        return unusable(address, method.name, method.response, data, error)


def unusable(
    address: str, rpc: str, of: type[Message], data: Data, error: ScanError | DecodeError
) -> InvalidResponseError:
    """Return the error of an answer whose bytes are over a bound, or no message of this type."""
    if isinstance(error, ScanError):
        why = f"the message {error}"
    else:
        why = f"its {len(data):,} bytes are no {of.DESCRIPTOR.name}"
    return InvalidResponseError(f"{address} answered {rpc}: {why}", address=address, rpc=rpc)
