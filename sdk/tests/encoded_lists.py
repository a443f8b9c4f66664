"""Lists that encode themselves as an ``EncodedColumn`` must."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiosemel import EncodedColumn
from semel_common.wire.messages.wire_format import varint


@dataclass(frozen=True, slots=True)
class EncodedList:
    """Implements ``EncodedColumn``, item by item."""

    items: Sequence[bytes | None]

    def __len__(self) -> int:
        return len(self.items)

    def size_bytes(self, start: int, stop: int) -> int:
        return sum(len(item or b"") for item in self.items[start:stop])

    def absent(self, start: int, stop: int) -> list[int]:
        return [at for at, item in enumerate(self.items[start:stop]) if item is None]

    def encode(self, tag: bytes, start: int, stop: int) -> bytes:
        items = [item or b"" for item in self.items[start:stop]]
        return b"".join(tag + varint(len(item)) + item for item in items)


def encoded(items: Sequence[bytes | None] | None) -> EncodedColumn | None:
    """Return a column of these; None if there is none."""
    return None if items is None else EncodedList(items)
