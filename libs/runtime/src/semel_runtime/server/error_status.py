"""Errors inside an answer as the status of the call, for clients that ask for one thing at a time.

An answer has an error for each of its parts, and the call succeeds. Who asks for one partition, one
group or one key would have to look for errors in two places: with ``semel-errors: status`` in the
metadata of the call, the first error inside the answer fails the call instead.
"""

from collections.abc import Iterable, Iterator
from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from semel.common.v1.errors_pb2 import Error
from semel_common.wire import status

METADATA_KEY = "semel-errors"
AS_STATUS = "status"


def wants_status(metadata: Iterable[tuple[str, str | bytes]]) -> bool:
    """Whether a call asks for errors as its status."""
    return (METADATA_KEY, AS_STATUS) in metadata


def raise_first(response: Message) -> None:
    """Raise the first error that an answer has for any of its parts."""
    for error in _errors_in(response):
        raise status.from_value(error)


def _errors_in(message: Message) -> Iterator[Error]:
    if isinstance(message, Error):
        yield message
        return
    for field in _fields_with_errors(message.DESCRIPTOR):
        value = getattr(message, field.name)
        if field.is_repeated:
            for each in value:
                yield from _errors_in(each)
        elif message.HasField(field.name):
            yield from _errors_in(value)


@cache
def _fields_with_errors(descriptor: Descriptor) -> tuple[FieldDescriptor, ...]:
    """Return where errors may be; records, of which there are many, are not looked at."""
    return tuple(each for each in descriptor.fields if _may_fail(each.message_type, ()))


def _may_fail(descriptor: Descriptor | None, above: tuple[Descriptor, ...]) -> bool:
    if descriptor is None or descriptor in above:
        return False
    if descriptor is Error.DESCRIPTOR:
        return True
    below = (*above, descriptor)
    return any(_may_fail(field.message_type, below) for field in descriptor.fields)
