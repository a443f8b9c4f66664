"""Arrow's columns of bytes as columns that encode themselves, for the SDK. No I/O.

Each item goes out after a tag and its length. Those prefixes come from a table, and one kernel of
Arrow joins all of them with all items, so nothing happens for each row in Python.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

TABLE_SIZE_MAX = 1 << 16
"""Longer items have their prefixes made for each length that there is."""
_TABLE_SIZE_MIN = 1 << 10
_CONTINUED = 0x80

Ends: TypeAlias = "memoryview[int]"


class _Encoded(NamedTuple):
    data: memoryview
    ends: Ends
    """Where each item ends in it, after a first 0."""


class _Items:
    """All items of a column, which are encoded once, however they are cut."""

    def __init__(self, column: pa.Array) -> None:
        self.absent: list[int] = pc.indices_nonzero(column.is_null()).to_pylist()
        self._items = column.fill_null(b"") if column.null_count else column
        self.ends = _ends(self._items)
        self._encoded: dict[bytes, _Encoded] = {}

    def encoded(self, tag: bytes) -> _Encoded:
        if tag not in self._encoded:
            prefixes = _prefixes(tag, pc.binary_length(self._items))
            joined = pc.binary_join_element_wise(prefixes, self._items, b"")
            data = memoryview(joined.buffers()[2] or b"")
            self._encoded[tag] = _Encoded(data, _ends(joined))
        return self._encoded[tag]


@dataclass(frozen=True, slots=True)
class ArrowColumn:
    """The items ``start`` to ``stop`` - 1 of a binary column. Implements ``EncodedColumn``."""

    items: _Items = field(repr=False)
    start: int
    stop: int

    @classmethod
    def of(cls, column: pa.Array) -> "ArrowColumn":
        """Return all of a column of type binary."""
        return cls(_Items(column), 0, len(column))

    def cut(self, start: int, stop: int) -> "ArrowColumn":
        """Return some of these items, at no cost."""
        return ArrowColumn(self.items, self.start + start, self.start + stop)

    def __len__(self) -> int:
        """See ``EncodedColumn``, as for all that follow."""
        return self.stop - self.start

    def size_bytes(self, start: int, stop: int) -> int:
        """Return what items take together."""
        ends = self.items.ends
        return ends[self.start + stop] - ends[self.start + start]

    @property
    def has_any(self) -> bool:
        """Whether any item is not null."""
        return len(self.absent(0, len(self))) < len(self)

    def absent(self, start: int, stop: int) -> Sequence[int]:
        """Return which items are null."""
        absent, first = self.items.absent, self.start + start
        begin, end = bisect_left(absent, first), bisect_left(absent, self.start + stop)
        return [row - first for row in absent[begin:end]]

    def encode(self, tag: bytes, start: int, stop: int) -> bytes:
        """Return items as protobuf writes them."""
        data, ends = self.items.encoded(tag)
        return bytes(data[ends[self.start + start] : ends[self.start + stop]])


def _ends(column: pa.Array) -> Ends:
    """Return where each item ends in the column's data, after where the first begins."""
    offsets = column.buffers()[1]
    whole = memoryview(offsets or bytes(4)).cast("i")
    return whole[column.offset : column.offset + len(column) + 1]


def _prefixes(tag: bytes, lengths: pa.Array) -> pa.Array:
    """Return what goes before items of these lengths."""
    longest = pc.max(lengths).as_py() or 0
    if longest < TABLE_SIZE_MAX:
        return _table(tag, max(_TABLE_SIZE_MIN, 1 << longest.bit_length())).take(lengths)
    distinct = lengths.dictionary_encode()
    prefixes = [tag + _varint(length) for length in distinct.dictionary.to_pylist()]
    return pa.array(prefixes, pa.binary()).take(distinct.indices)


@lru_cache(maxsize=16)
def _table(tag: bytes, size: int) -> pa.Array:
    return pa.array([tag + _varint(length) for length in range(size)], pa.binary())


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number >= _CONTINUED:
        digits.append(number & 0x7F | _CONTINUED)
        number >>= 7
    digits.append(number)
    return bytes(digits)
