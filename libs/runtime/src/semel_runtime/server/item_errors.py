"""Errors inside an answer: found, and raised for clients that ask for one thing at a time.

An answer has an error for each of its parts, and the call succeeds. A client that asks for one
partition, one group or one key would have to look for errors in two places: with ``semel-errors:
status`` in the metadata of the call, the first error inside the answer fails the call instead.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

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
    for error in errors_in(response):
        raise status.from_value(error)


def errors_in(message: Message) -> Iterator[Error]:
    """Yield the errors that an answer has for its parts, in their order.

    Every answer is looked through: an item without an error costs one look.
    """
    for place in _places(message.DESCRIPTOR):
        if not place.repeated and not message.HasField(place.field):
            continue
        value = getattr(message, place.field)
        if place.is_error:
            yield value
            continue
        for item in value if place.repeated else (value,):
            if not place.error:
                yield from errors_in(item)
            elif item.HasField(place.error):
                yield getattr(item, place.error)


class _Place(NamedTuple):
    """A field of a message in which errors may be."""

    field: str
    repeated: bool
    is_error: bool
    error: str
    """The one field in its messages that is an error, if there is no other place in them."""


@cache
def _places(descriptor: Descriptor) -> tuple[_Place, ...]:
    """Return where errors may be; records, of which there are many, are not looked at."""
    return tuple(_place(field) for field in descriptor.fields if _may_fail(field.message_type, ()))


def _place(field: FieldDescriptor) -> _Place:
    is_error = field.message_type is Error.DESCRIPTOR
    below = () if is_error else _places(field.message_type)
    error = below[0].field if len(below) == 1 and below[0].is_error else ""
    return _Place(field.name, field.is_repeated, is_error, error)


def _may_fail(descriptor: Descriptor | None, above: tuple[Descriptor, ...]) -> bool:
    if descriptor is None or descriptor in above:
        return False
    if descriptor is Error.DESCRIPTOR:
        return True
    below = (*above, descriptor)
    return any(_may_fail(field.message_type, below) for field in descriptor.fields)
