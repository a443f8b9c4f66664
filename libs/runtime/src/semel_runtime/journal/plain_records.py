"""Records whose fields are those of their messages: a table maps them, field by field.

A journal's message has one kind of record in its oneof. A plain record has the same fields as its
message there: numbers, texts, tuples of these, and None for a field that is absent.
"""

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Generic, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from msgspec import Struct

R = TypeVar("R", bound=Struct)


class PlainRecords(Generic[R]):
    """The plain records of a journal, each under its name in the journal's message."""

    def __init__(self, journal: Descriptor, kinds: Mapping[str, type[R]]) -> None:
        """Check that each kind of record has the fields of its message."""
        self._names = {kind: name for name, kind in kinds.items()}
        self._readers = {
            name: _Reader(kind, journal.fields_by_name[name]) for name, kind in kinds.items()
        }

    def write(self, record: R, out: Message) -> None:
        """Fill an empty message of the journal with a record."""
        message: Message = getattr(out, self._names[type(record)])
        message.SetInParent()
        for field in record.__struct_fields__:
            value = getattr(record, field)
            if isinstance(value, tuple):
                getattr(message, field).extend(value)
            elif value is not None:
                setattr(message, field, value)

    def read(self, name: str | None, journal: Message) -> R | None:
        """Return the record in a message of the journal; None: its name is not in the table."""
        reader = None if name is None else self._readers.get(name)
        return None if name is None or reader is None else reader.read(getattr(journal, name))


class _Reader(Generic[R]):
    """Reads messages of one type as records of one kind."""

    def __init__(self, kind: type[R], place: FieldDescriptor) -> None:
        assert place.message_type is not None, f"{place.full_name} is no message"
        fields = place.message_type.fields
        names = {field.name for field in fields}
        assert names == set(kind.__struct_fields__), f"{kind} has not the fields of {place.name}"
        self._kind = kind
        self._fields = {field.name: _reader(field) for field in fields}

    def read(self, message: Message) -> R:
        return self._kind(**{name: read(message) for name, read in self._fields.items()})


def _reader(field: FieldDescriptor) -> Callable[[Message], object]:
    assert field.message_type is None, f"{field.full_name} is a message: its record is not plain"
    if field.is_repeated:
        return partial(_entries, field.name)
    return partial(_value_or_none, field.name) if field.has_presence else attrgetter(field.name)


def _entries(name: str, message: Message) -> tuple[object, ...]:
    return tuple(getattr(message, name))


def _value_or_none(name: str, message: Message) -> object:
    return getattr(message, name) if message.HasField(name) else None
