"""Arrow's columns, encoded: the same bytes as protobuf writes, wherever they are cut."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiosemel import EncodedColumn
from pyspark_semel.sink.encoding import TABLE_SIZE_MAX, ArrowColumn
from semel.common.v1.records_pb2 import Records
from semel_common.record_batches.encoded_records import KEYS_TAG, VALUES_TAG

Items = list[bytes | None]


def as_keys(items: Items) -> bytes:
    return Records(keys=[item or b"" for item in items]).SerializeToString()


def as_values(items: Items) -> bytes:
    return Records(values=[item or b"" for item in items]).SerializeToString()


@given(data=st.data(), items=st.lists(st.none() | st.binary(max_size=300), max_size=20))
def test_a_column_is_encoded_as_protobuf_does(data: st.DataObject, items: Items) -> None:
    cuts = st.tuples(*[st.integers(0, len(items))] * 2).map(sorted)
    first, last = data.draw(cuts)
    array = pa.array(items, pa.binary()).slice(first, last - first)
    items = items[first:last]
    column: EncodedColumn = ArrowColumn.of(array)
    for _ in range(2):
        assert len(column) == len(items)
        start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(items))] * 2)))
        part = items[start:stop]
        assert column.size_bytes(start, stop) == sum(len(item or b"") for item in part)
        assert column.absent(start, stop) == [at for at, item in enumerate(part) if item is None]
        assert column.encode(KEYS_TAG, start, stop) == as_keys(part)
        assert column.encode(VALUES_TAG, start, stop) == as_values(part)
        assert isinstance(column, ArrowColumn)
        column, items = column.cut(start, stop), part


@pytest.mark.parametrize(
    "lengths",
    [
        [0, 127, 128, 1023],
        [1024, 16_383, 16_384, TABLE_SIZE_MAX - 1],
        [TABLE_SIZE_MAX, 0, 1 << 21, TABLE_SIZE_MAX],
    ],
    ids=str,
)
def test_items_of_any_length_are_encoded(lengths: list[int]) -> None:
    items: Items = [b"x" * length for length in lengths]
    column = ArrowColumn.of(pa.array(items, pa.binary()))
    assert column.encode(VALUES_TAG, 0, len(items)) == as_values(items)


def test_nulls_that_cover_bytes_take_nothing() -> None:
    validity = pa.py_buffer(b"\x05")
    ends = pa.array([0, 1, 3, 4], pa.int32()).buffers()[1]
    array = pa.Array.from_buffers(pa.binary(), 3, [validity, ends, pa.py_buffer(b"a??b")])
    assert array.to_pylist() == [b"a", None, b"b"]
    column = ArrowColumn.of(array)
    assert (column.size_bytes(0, 3), column.absent(0, 3)) == (2, [1])
    assert column.encode(VALUES_TAG, 0, 3) == as_values([b"a", None, b"b"])
