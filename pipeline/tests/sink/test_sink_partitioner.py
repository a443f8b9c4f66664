"""Columns of keys go where single keys go."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyspark_semel.sink.partitioner import ANY, partitions_of
from semel_common.record_batches.partitioner import partition_for_key

KEYS = st.lists(st.none() | st.binary(max_size=40), max_size=50)


@given(KEYS, st.integers(0, 5), st.integers(1, 50))
def test_the_partitions_are_those_of_single_keys(
    keys: list[bytes | None], start: int, count: int
) -> None:
    column = pa.array(keys, pa.binary()).slice(start)
    expected = [ANY if key is None else partition_for_key(key, count) for key in keys[start:]]
    assert partitions_of(column, count).tolist() == expected


def test_a_column_without_anything_has_no_partitions() -> None:
    assert partitions_of(pa.array([], pa.binary()), 3).tolist() == []
    assert partitions_of(pa.array([None], pa.binary()), 3).tolist() == [ANY]
    assert partitions_of(pa.array([b""], pa.binary()), 3).tolist() == [partition_for_key(b"", 3)]
