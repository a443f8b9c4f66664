"""How much records take, and how many rows of columns fit into a batch.

The measuring looks at every record anyway, so it refuses a value that is not bytes, whatever the
caller's types promised.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from aiosemel._shared.name_checks import shown
from aiosemel.errors import InvalidRecordError, InvalidRequestError
from semel_common.record_batches.headers import HeaderPairs
from semel_common.record_batches.payload_limits import HEADER_OVERHEAD_BYTES, HEADERS_PER_RECORD_MAX

RECORD_OVERHEAD_BYTES = 16
"""What a record takes beside key, value and headers; counted the same for all."""
_PAIR = 2
TIMESTAMP_MAX_MS = (1 << 63) - 1

Headers = Sequence[tuple[str, bytes | None]]
"""Names and values, in order; a name may come twice."""


class Slice(NamedTuple):
    """Rows ``start`` to ``stop`` - 1 of columns."""

    start: int
    stop: int
    size_bytes: int


def record_size(value: object, key: object, headers: HeaderPairs) -> int:
    """Return the size of a record; raises TypeError for a key or value that is not bytes."""
    size = RECORD_OVERHEAD_BYTES
    if value is not None:
        size += len(value) if isinstance(value, bytes) else _refuse("value", value)
    if key is not None:
        size += len(key) if isinstance(key, bytes) else _refuse("key", key)
    return size + headers_size(headers) if headers else size


def check_column(name: str, column: object) -> None:
    """Raise TypeError for a column without a length: each column is read more than once."""
    if not hasattr(column, "__len__"):
        raise TypeError(f"{name} must be a sequence, not {type(column).__name__}")


def pairs_of(headers: Iterable[tuple[str, bytes | None]]) -> HeaderPairs:
    """Return the headers of a record as pairs; raises TypeError for a value that has no items."""
    if type(headers) not in (list, tuple) and not isinstance(headers, Iterable):
        raise TypeError(f"headers must be (name, value) pairs, not {shown(headers)}")
    return tuple(headers)


def headers_size(headers: HeaderPairs) -> int:
    """Return what the headers of a record take.

    Raises TypeError for invalid headers, InvalidRecordError for more headers than readers open.
    """
    if len(headers) > HEADERS_PER_RECORD_MAX:
        raise InvalidRecordError(
            f"a record has {len(headers)} headers: it may have {HEADERS_PER_RECORD_MAX}"
        )
    size = 0
    for pair in headers:
        if type(pair) is not tuple or len(pair) != _PAIR:
            _check_pair(pair)
        key, value = pair
        size += HEADER_OVERHEAD_BYTES + _key_size(key) + _size("header value", value)
    return size


def row_sizes(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None) -> list[int]:
    """Return the size of each row of columns.

    Raises TypeError for values that are not bytes, InvalidRequestError for columns of different
    lengths.
    """
    sizes = _column_sizes("value", values)
    if keys is None:
        return [size + RECORD_OVERHEAD_BYTES for size in sizes]
    if len(keys) != len(values):
        raise InvalidRequestError(f"{len(values)} values have {len(keys)} keys")
    key_sizes = _column_sizes("key", keys)
    return [a + b + RECORD_OVERHEAD_BYTES for a, b in zip(sizes, key_sizes, strict=True)]


def slices(sizes: Sequence[int], size_max_bytes: int) -> Iterator[Slice]:
    """Cut columns into as few slices as possible; a row that is larger is a slice of its own."""
    ends = list(accumulate(sizes))
    start, base = 0, 0
    while start < len(ends):
        stop = max(start + 1, bisect_right(ends, base + size_max_bytes, lo=start))
        yield Slice(start, stop, ends[stop - 1] - base)
        start, base = stop, ends[stop - 1]


def slices_by(
    size_of: Callable[[int, int], int], row_count: int, size_max_bytes: int
) -> Iterator[Slice]:
    """Cut as ``slices``, by a function that knows what rows take together."""
    start = 0
    while start < row_count:
        stop = row_count
        if size_of(start, stop) > size_max_bytes:
            size_up_to = partial(size_of, start)
            stop = start - 1 + bisect_right(range(start, stop), size_max_bytes, key=size_up_to)
            stop = max(start + 1, stop)
        yield Slice(start, stop, size_of(start, stop))
        start = stop


def check_timestamp(timestamp_ms: object) -> None:
    """Raise TypeError or InvalidRequestError for a value that is no time after 1970."""
    if type(timestamp_ms) is not int:
        raise TypeError(f"timestamp_ms must be int, not {type(timestamp_ms).__name__}")
    if not 0 <= timestamp_ms <= TIMESTAMP_MAX_MS:
        raise InvalidRequestError(
            f"timestamp_ms is {shown(timestamp_ms)}, not 0 to {TIMESTAMP_MAX_MS}"
        )


def _column_sizes(name: str, column: Sequence[bytes | None]) -> list[int]:
    kinds = set(map(type, column))
    if kinds != {bytes}:
        return [_size(name, item) for item in column]
    return [*map(len, column)]  # type: ignore[arg-type]  # all are bytes


def _check_pair(pair: object) -> None:
    match pair:
        case (_, _):
            pass
        case _:
            raise TypeError(f"headers must be (name, value) pairs, not {shown(pair)}")


def _key_size(key: object) -> int:
    if not isinstance(key, str):
        raise TypeError(f"header key must be str, not {type(key).__name__}")
    try:
        return len(key.encode())
    except UnicodeEncodeError:
        raise InvalidRecordError(
            f"header key {shown(key)} has surrogates, which are no characters: leave them out"
        ) from None


def _size(name: str, item: object) -> int:
    if item is None:
        return 0
    return len(item) if isinstance(item, bytes) else _refuse(name, item)


def _refuse(name: str, value: object) -> int:
    hint = ": encode it first" if isinstance(value, str) else ""
    raise TypeError(f"{name} must be bytes or None, not {type(value).__name__}{hint}")
