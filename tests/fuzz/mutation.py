"""Changes to requests: of their bytes, as a broken wire makes them, and of their fields."""

from collections.abc import Sequence
from random import Random
from typing import cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

EDITS_MAX = 4
LONG = 70_000
MANY = 1_200
TOGETHER_MAX_BYTES = 400_000
"""How much a list may become longer at once: a larger one never gets through gRPC's limit."""

_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def broken(data: bytes, random: Random) -> bytes:
    """Return the bytes with some flipped, lost, repeated or added."""
    changed = bytearray(data)
    for _ in range(random.randint(1, EDITS_MAX)):
        at = random.randrange(len(changed) + 1)
        end = min(len(changed), at + random.randint(1, 8))
        match random.randrange(4):
            case 0 if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case 1:
                del changed[at:end]
            case 2:
                changed[at:at] = changed[at:end]
            case _:
                changed[at:at] = random.randbytes(random.randint(1, 8))
    return bytes(changed)


def edited(message: Message, others: Sequence[Message], random: Random) -> Message:
    """Return the message with some fields changed, or taken from others of its kind."""
    changed = type(message)()
    changed.CopyFrom(message)
    for _ in range(random.randint(1, EDITS_MAX)):
        _edit(changed, random.choice(others), random)
    return changed


def _edit(message: Message, other: Message, random: Random) -> None:
    """Change one field, here or in a message within."""
    fields = message.DESCRIPTOR.fields
    if not fields:
        return
    field = cast("FieldDescriptor", random.choice(fields))
    within = [each for each in _messages(message, field) if random.random() < 0.8]  # mostly deeper
    if within:
        chosen = random.choice(within)
        theirs = [each for each in _messages(other, field) if type(each) is type(chosen)]
        _edit(chosen, random.choice(theirs or [chosen]), random)
    elif random.random() < 0.2:  # now and then
        message.ClearField(field.name)
    elif field.is_repeated:
        _edit_list(message, field, random)
    elif field.message_type is not None:
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _value(field, getattr(message, field.name), random))


def _messages(message: Message, field: FieldDescriptor) -> list[Message]:
    if field.message_type is None or field.message_type.GetOptions().map_entry:
        return []
    if field.is_repeated:
        return list(getattr(message, field.name))
    return [getattr(message, field.name)] if message.HasField(field.name) else []


def _edit_list(message: Message, field: FieldDescriptor, random: Random) -> None:
    values = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        values.clear()
    elif field.message_type is not None:
        item = random.choice(values) if values else type(values.add())()
        values.extend([item] * _times(item.ByteSize(), random))
    else:
        item = random.choice(values) if values else _value(field, field.default_value, random)
        value = _value(field, item, random)
        length = len(value) if isinstance(value, str | bytes) else 8
        values.extend([value] * _times(length, random))


def _times(length: int, random: Random) -> int:
    times = random.choice((1, 1, 1, 2, 2, 5, MANY))
    return times if times * length <= TOGETHER_MAX_BYTES else 1


def _value(field: FieldDescriptor, value: object, random: Random) -> object:
    """Return another value for a field that is no message."""
    if field.cpp_type in _RANGES:
        lowest, highest = _RANGES[field.cpp_type]
        near = int(value) + random.choice((-1, 1)) if isinstance(value, int) else 0
        anywhere = random.randint(lowest, highest)
        choice = random.choice((0, -1, 1, 2, lowest, highest, near, near, anywhere))
        return min(max(choice, lowest), highest)
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return _text(field, value, random)
        case FieldDescriptor.CPPTYPE_ENUM:
            return random.choice((0, 1, 2, 3, 99, -1))
        case FieldDescriptor.CPPTYPE_BOOL:
            return not value
        case _:
            return random.choice((0.0, -1.0, float("inf"), float("nan")))


def _text(field: FieldDescriptor, value: object, random: Random) -> object:
    if field.type == FieldDescriptor.TYPE_BYTES:
        data = value if isinstance(value, bytes) else b""
        return random.choice((b"", broken(data, random), broken(data, random), bytes(LONG)))
    return random.choice(("", f"{value}x", "../\0\n", "ß" * 300, "(a*)*b" * 20, "x" * LONG))
