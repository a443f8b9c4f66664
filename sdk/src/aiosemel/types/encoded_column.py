"""Columns that write themselves: what ``send_columns`` takes in the place of lists of bytes."""

from collections.abc import Sequence
from typing import Protocol


class EncodedColumn(Protocol):
    """Values or keys that lie in memory one after the other, such as an array of Arrow.

    Python does no work for a single record. The broker stores the result of ``encode`` as it is,
    and no code looks at it before a reader does: it must be exact.
    """

    def __len__(self) -> int:
        """Return how many items there are."""
        ...

    def size_bytes(self, start: int, stop: int) -> int:
        """Return the size of the items ``start`` to ``stop`` - 1 together; None counts as 0."""
        ...

    def absent(self, start: int, stop: int) -> Sequence[int]:
        """Return which of these items are None, counted from ``start``, ascending."""
        ...

    def encode(self, tag: bytes, start: int, stop: int) -> bytes:
        """Return these items as protobuf writes a repeated field of bytes.

        That is one after the other, each after ``tag`` and its length as a varint; None as if it
        were empty.
        """
        ...
