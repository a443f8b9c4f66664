"""The scan of a message: counts what the message holds, before protobuf makes objects of it. Pure.

An empty message in a list takes two bytes on the wire and more than a hundred in memory, so the
size of a message does not bound its cost. The scan walks the wire format, makes no objects, and
stops at the first bound that the message exceeds: its cost is bounded by the number of elements.

The rules are elsewhere: requests in ``request_scan``, answers in ``answers``, payloads in
``semel_common.record_batches.batches``.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from semel_common.wire.messages.wire_format import (
    CONTINUED,
    LENGTH_DELIMITED,
    VARINT,
    WIRE_TYPE,
    Data,
    WireFormatError,
    packed_count,
    read_varint,
    skip_value,
)

_FIXED_BYTES = {
    FieldDescriptor.TYPE_FIXED64: 8,
    FieldDescriptor.TYPE_SFIXED64: 8,
    FieldDescriptor.TYPE_DOUBLE: 8,
    FieldDescriptor.TYPE_FIXED32: 4,
    FieldDescriptor.TYPE_SFIXED32: 4,
    FieldDescriptor.TYPE_FLOAT: 4,
}
_WIRE_TYPES = {0: 0, 8: 1, 4: 5}
"""The wire type of a number that is not packed, by its fixed bytes."""
_CUT_OFF = "ends within a field"
_NEVER_PACKED = (
    FieldDescriptor.TYPE_STRING,
    FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_MESSAGE,
)


class Bound(NamedTuple):
    """What one field may hold."""

    count_max: int = 1
    """Entries in one message, all places of the field together."""
    size_max_bytes: int | None = None
    """Bytes of one entry; None: a message, a number, or as large as the message may be."""


class Field(NamedTuple):
    """A field that the scan looks at."""

    name: str = ""
    bound: Bound | None = None
    is_counted: bool = True
    """Whether ``count_max`` applies: the field is a list."""
    packed_bytes: int | None = None
    """The size of each number in a packed list; 0: varints; None: the field is no packed list."""
    content: "Shape | None" = None
    """The fields of a message."""


Shape: TypeAlias = dict[int, Field]
"""The fields of a message that the scan looks at, by their tags."""


class ScanError(ValueError):
    """A message is malformed, or exceeds a bound. The text is a predicate: ``has more than …``."""


class BoundError(ScanError):
    """A message, or its field of this name, exceeds a bound."""

    def __init__(self, why: str, field: str = "", *, is_count: bool = False) -> None:
        """Keep the name of the field; an empty name: the message as a whole."""
        super().__init__(why)
        self.field = field
        self.is_count = is_count


def shape_of(descriptor: Descriptor, bound_of: Callable[[str], Bound | None]) -> Shape:
    """Return the fields of a type that are lists of numbers, are messages, or have a bound.

    ``bound_of`` gives the bound of a field by its full name. No type may hold itself.
    """
    shape: Shape = {}
    for declared in descriptor.fields:
        bound = bound_of(declared.full_name)
        is_number = declared.type not in _NEVER_PACKED
        content = (
            None if declared.message_type is None else shape_of(declared.message_type, bound_of)
        )
        field = Field(declared.name, bound, declared.is_repeated, content=content)
        if is_number and declared.is_repeated:
            fixed_bytes = _FIXED_BYTES.get(declared.type, 0)
            packed = field._replace(packed_bytes=fixed_bytes)
            shape[declared.number << 3 | LENGTH_DELIMITED] = packed
            if bound is not None:
                shape[declared.number << 3 | _WIRE_TYPES[fixed_bytes]] = field
        elif bound is not None or content is not None:
            shape[declared.number << 3 | (VARINT if is_number else LENGTH_DELIMITED)] = field
    return shape


def check_message(data: Data, shape: Shape, *, elements_max: int) -> None:
    """Raise ScanError if a message is malformed or exceeds a bound."""
    MessageScan(elements_max).check(data, shape, 0, len(data))


class MessageScan:
    """The scan of one message, or of several that share one bound on their elements.

    Elements are the fields on the wire, at all levels of ``Shape``, and the numbers in packed lists
    that have no bound of their own.
    """

    def __init__(self, elements_max: int) -> None:
        """Begin with all elements left."""
        self._elements_max = elements_max
        self._elements_left = elements_max
        self._counts: dict[str, int] = {}

    def check(self, data: Data, shape: Shape, start: int, end: int) -> None:
        """Raise ScanError if one message is malformed or exceeds a bound."""
        self._counts = {}
        try:
            self._walk(data, shape, start, end)
        except IndexError:
            raise ScanError(_CUT_OFF) from None
        except WireFormatError as error:
            raise ScanError(str(error)) from None

    def _walk(self, data: Data, shape: Shape, at: int, end: int) -> None:  # noqa: C901 - hot
        """Go over the fields of a message, and of the messages in it."""
        left = self._elements_left
        try:
            while at < end:
                tag = data[at]
                at += 1
                if tag >= CONTINUED:
                    tag, at = read_varint(data, at - 1)
                left -= 1
                if left < 0:
                    raise self._too_many_elements()
                known = shape.get(tag)
                if tag & WIRE_TYPE != LENGTH_DELIMITED:
                    if known is not None:
                        self._count(known, 1)
                    at = skip_value(data, at, tag)
                    continue
                size = data[at]
                at += 1
                if size >= CONTINUED:
                    if data[at] < CONTINUED:  # Most long values have two bytes: no call for them.
                        size += (data[at] << 7) - CONTINUED
                        at += 1
                    else:
                        size, at = read_varint(data, at - 1)
                if known is not None:
                    if at + size > end:  # Else each frame could claim all bytes behind it.
                        raise ScanError(_CUT_OFF)
                    self._elements_left = left
                    self._look_into(known, data, at, at + size)
                    left = self._elements_left
                at += size
        finally:  # The cost of a refused message counts too.
            self._elements_left = min(left, self._elements_left)
        if at != end:
            raise ScanError(_CUT_OFF)

    def _look_into(self, known: Field, data: Data, at: int, end: int) -> None:
        """Hold a value against the bounds, with all that it holds."""
        if known.bound is not None:
            self._hold(known, known.bound, data, at, end)
        elif known.packed_bytes is not None:
            self._elements_left -= packed_count(data[at:end], known.packed_bytes)
            if self._elements_left < 0:
                raise self._too_many_elements()
        if known.content is not None and at < end:
            self._walk(data, known.content, at, end)

    def _hold(self, known: Field, bound: Bound, data: Data, at: int, end: int) -> None:
        size_max_bytes = bound.size_max_bytes
        if size_max_bytes is not None and end - at > size_max_bytes:
            raise BoundError(f"has {end - at:,} bytes: at most {size_max_bytes:,}", known.name)
        if known.packed_bytes is not None:
            self._count(known, packed_count(data[at:end], known.packed_bytes))
        elif known.is_counted:
            self._count(known, 1)

    def _too_many_elements(self) -> BoundError:
        return BoundError(f"has more than {self._elements_max:,} elements", is_count=True)

    def _count(self, known: Field, entries: int) -> None:
        assert known.bound is not None
        count = self._counts.get(known.name, 0) + entries
        if count > known.bound.count_max:
            why = f"has more than {known.bound.count_max:,} entries"
            raise BoundError(why, known.name, is_count=True)
        self._counts[known.name] = count
