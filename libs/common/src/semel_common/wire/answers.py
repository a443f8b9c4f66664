"""From the bytes of an answer to its message: sizes first, then form.

Whether an answer fits its request is checked above this package, where requests are understood.
"""

from google.protobuf.message import DecodeError, Message

from semel_common.client_errors import InvalidResponseError
from semel_common.wire.methods import Method, Req, Res
from semel_common.wire.scan import Bounds, Data, MessageBoundsError, check_bounds

ELEMENTS_MAX = 1 << 20
"""How many fields and numbers an answer may hold. In metadata, a partition of a topic takes 4."""


def parse(
    method: Method[Req, Res], data: Data, address: str, bounds: Bounds
) -> Res | InvalidResponseError:
    """Return the message of a unary answer, or why it is none.

    The error is returned: one that is raised here would keep the bytes for as long as it lives.
    """
    try:
        check_bounds(data, method.response, bounds)
        return method.response.FromString(bytes(data))
    except (MessageBoundsError, DecodeError) as error:
        return unusable(address, method.name, method.response, data, error)


def unusable(
    address: str, rpc: str, of: type[Message], data: Data, error: MessageBoundsError | DecodeError
) -> InvalidResponseError:
    """Return the error of an answer whose bytes are over a bound, or no message of this type."""
    if isinstance(error, MessageBoundsError):
        why = f"the message {error}"
    else:
        why = f"its {len(data):,} bytes are no {of.DESCRIPTOR.name}"
    return InvalidResponseError(f"{address} answered {rpc}: {why}", address=address, rpc=rpc)
