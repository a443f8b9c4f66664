"""Values whose fields are those of a message: the types of the fields say how each is mapped.

A field is a number, a text, an enum, a value of this kind, or a tuple of these; None stands for a
field that is absent, or, if fields of its kind are never absent, for 0 or an empty text. A map is a
tuple of pairs, in order.
"""

import re
from collections.abc import Callable
from enum import Enum
from functools import partial
from operator import attrgetter, getitem
from types import NoneType
from typing import Generic, TypeVar, cast, get_args, get_type_hints

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

V = TypeVar("V")
M = TypeVar("M", bound=Message)

_Read = Callable[[Message], object]
_Write = Callable[[object, Message], None]
_ReadOne = Callable[[object], object]


class PlainMessage(Generic[V, M]):
    """Maps values to messages of one type and back; their class has annotated fields."""

    def __init__(self, kind: type[V], message: type[M]) -> None:
        """Check that the values have the fields of the messages."""
        hints = get_type_hints(kind)
        fields = cast(Descriptor, message.DESCRIPTOR).fields  # upb's class has equal fields
        names = {field.name for field in fields}
        assert names == set(hints), f"{kind} has not the fields of {message.DESCRIPTOR.name}"
        self._kind, self._message = kind, message
        self._reads: dict[str, _Read] = {}
        self._writes: dict[str, _Write | None] = {}
        for field in fields:
            self._reads[field.name], self._writes[field.name] = _mapping(field, hints[field.name])

    def read(self, message: M) -> V:
        """Return the value of a message."""
        return self._kind(**{name: read(message) for name, read in self._reads.items()})

    def write(self, value: V, out: M) -> None:
        """Fill an empty message, or the place of one."""
        out.SetInParent()
        for name, write in self._writes.items():
            field = getattr(value, name)
            if field is None:
                continue
            if write is None:
                setattr(out, name, field)
            else:
                write(field, out)

    def message(self, value: V) -> M:
        """Return the message of a value."""
        message = self._message()
        self.write(value, message)
        return message


def _mapping(field: FieldDescriptor, hint: object) -> tuple[_Read, _Write | None]:
    """Return how a field is read and written; None: it is set to its value."""
    name, inner = field.name, field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return partial(_pairs, name), partial(_update, name)
    kind = _kind_in(hint)
    read_one: _ReadOne | None = None
    write: _Write | None = partial(_extend, name) if field.is_repeated else None
    if inner is not None:
        values = PlainMessage[object, Message](kind, GetMessageClass(inner))
        read_one = values.read  # type: ignore[assignment]  # of messages, which the field has
        write = partial(_add_all if field.is_repeated else _fill, name, values)
    elif issubclass(kind, int) and issubclass(kind, Enum):
        read_one = kind
    elif field.enum_type is not None and issubclass(kind, Enum):
        numbers = _numbers(kind, field.enum_type)
        read_one = partial(getitem, {number: member for member, number in numbers.items()})
        write = partial(_set_number, name, numbers)
    return _reader(field, read_one, is_optional=NoneType in get_args(hint)), write


def _kind_in(hint: object) -> type:
    """Return X of the types X, X | None and tuple[X, ...]."""
    kind = next(each for each in (*get_args(hint), hint) if each is not NoneType)
    assert isinstance(kind, type), f"{hint} is no type of a plain field"
    return kind


def _numbers(kind: type[Enum], enum: EnumDescriptor) -> dict[object, int]:
    """Return the numbers of members by name: ABORT_REASON_CLIENT is that of CLIENT."""
    prefix = re.sub("(?<!^)(?=[A-Z])", "_", enum.name).upper()
    return {member: enum.values_by_name[f"{prefix}_{member.name}"].number for member in kind}


def _reader(field: FieldDescriptor, read_one: _ReadOne | None, *, is_optional: bool) -> _Read:
    name = field.name
    if field.is_repeated:
        return partial(_entries, name, read_one)
    if is_optional:
        absent = _is_absent if field.has_presence else _is_empty
        return partial(_value_or_none, name, read_one, absent)
    return attrgetter(name) if read_one is None else partial(_value, name, read_one)


def _value(name: str, read_one: _ReadOne, message: Message) -> object:
    return read_one(getattr(message, name))


def _value_or_none(
    name: str,
    read_one: _ReadOne | None,
    is_none: Callable[[str, Message], bool],
    message: Message,
) -> object:
    if is_none(name, message):
        return None
    value: object = getattr(message, name)
    return value if read_one is None else read_one(value)


def _is_absent(name: str, message: Message) -> bool:
    return not message.HasField(name)


def _is_empty(name: str, message: Message) -> bool:
    return not getattr(message, name)


def _entries(name: str, read_one: _ReadOne | None, message: Message) -> tuple[object, ...]:
    entries = getattr(message, name)
    return tuple(entries) if read_one is None else tuple(map(read_one, entries))


def _pairs(name: str, message: Message) -> tuple[tuple[object, object], ...]:
    return tuple(sorted(getattr(message, name).items()))


def _extend(name: str, value: object, out: Message) -> None:
    getattr(out, name).extend(value)


def _update(name: str, value: object, out: Message) -> None:
    getattr(out, name).update(value)


def _set_number(name: str, numbers: dict[object, int], value: object, out: Message) -> None:
    setattr(out, name, numbers[value])


def _fill(name: str, values: PlainMessage[object, Message], value: object, out: Message) -> None:
    values.write(value, getattr(out, name))


def _add_all(
    name: str, values: PlainMessage[object, Message], value: tuple[object, ...], out: Message
) -> None:
    for each in value:
        values.write(each, getattr(out, name).add())
