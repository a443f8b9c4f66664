"""The pages of a journal file by their kinds, as the file itself says, and bits that flip in them.

A page of a file with auto-vacuum is named in a pointer map: a root, a page below one, a page of a
long value, or a free one. What kind of tree a page belongs to, says its first byte.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from random import Random

from semel_runtime.journal.sqlite.folder import JOURNAL_FILE

_HEADER_BYTES = 100
_ENTRY_BYTES = 5
_ROOT, _FREE, _OVERFLOW_FIRST, _OVERFLOW, _TREE = 1, 2, 3, 4, 5


class PageKind(StrEnum):
    """The use of a page."""

    HEADER = "header of the file"
    SCHEMA = "schema"
    POINTER_MAP = "pointer map"
    TABLE_LEAF = "table, leaf"
    TABLE_INTERIOR = "table, interior"
    INDEX_LEAF = "index, leaf"
    INDEX_INTERIOR = "index, interior"
    OVERFLOW = "overflow"
    FREE = "free"
    PAYLOADS = "file of payloads"


_TREES = {
    0x0D: PageKind.TABLE_LEAF,
    0x05: PageKind.TABLE_INTERIOR,
    0x0A: PageKind.INDEX_LEAF,
    0x02: PageKind.INDEX_INTERIOR,
}


def pages(file: Path) -> Mapping[PageKind, list[tuple[int, int]]]:
    """Return the byte ranges of a file, by kind; each is (start, end)."""
    data = file.read_bytes()
    page_bytes = int.from_bytes(data[16:18], "big")
    found: dict[PageKind, list[tuple[int, int]]] = {kind: [] for kind in PageKind}
    found[PageKind.HEADER].append((0, _HEADER_BYTES))
    found[PageKind.SCHEMA].append((_HEADER_BYTES, page_bytes))
    for number in range(2, len(data) // page_bytes + 1):
        start = (number - 1) * page_bytes
        found[_kind(data, page_bytes, number)].append((start, start + page_bytes))
    return found


def places(folder: Path) -> Mapping[PageKind, list[tuple[Path, tuple[int, int]]]]:
    """Return files of a journal with their byte ranges, by kind; files of payloads among them."""
    file = folder / JOURNAL_FILE
    found = {kind: [(file, span) for span in spans] for kind, spans in pages(file).items()}
    payloads = folder.glob("journal.payloads-*")
    found[PageKind.PAYLOADS] = [(path, (0, path.stat().st_size)) for path in payloads]
    return found


def flip(file: Path, span: tuple[int, int], random: Random, *, bits: int) -> list[int]:
    """Flip some bits within a range of bytes; return where they are, in bits."""
    where = sorted(random.sample(range(span[0] * 8, span[1] * 8), bits))
    with file.open("r+b") as opened:
        for each in where:
            opened.seek(each // 8)
            (byte,) = opened.read(1)
            opened.seek(each // 8)
            opened.write(bytes([byte ^ (1 << each % 8)]))
    return where


def _kind(data: bytes, page_bytes: int, number: int) -> PageKind:
    of_a_map = page_bytes // _ENTRY_BYTES
    map_number = (number - 2) // (of_a_map + 1) * (of_a_map + 1) + 2
    if map_number == number:
        return PageKind.POINTER_MAP
    kind = data[(map_number - 1) * page_bytes + (number - map_number - 1) * _ENTRY_BYTES]
    if kind in {_OVERFLOW_FIRST, _OVERFLOW}:
        return PageKind.OVERFLOW
    if kind == _FREE:
        return PageKind.FREE
    assert kind in {_ROOT, _TREE}, f"page {number} is named {kind}"
    first = data[(number - 1) * page_bytes]
    return _TREES[first]
