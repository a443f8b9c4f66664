"""How batches of records become RecordBatches that Spark accepts."""

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from aiosemel import ColumnBatch, TopicPartition
from pyspark_semel.errors import SchemaError
from pyspark_semel.source.columns import RecordBatches, check_schema, schema


def batch(first: int, values: list[bytes | None], **columns: object) -> ColumnBatch:
    given: dict[str, object] = {
        "topic_partition": TopicPartition("orders", 3),
        "offsets": range(first, first + len(values)),
        "values": values,
        "keys": None,
        "timestamps_ms": [1_000 + position for position in range(len(values))],
        "headers": {},
    }
    return ColumnBatch(**{**given, **columns})  # type: ignore[arg-type]  # a test's own


def test_a_record_batch_has_the_types_that_spark_asks_for() -> None:
    wanted = schema(include_headers=True)
    made = RecordBatches(wanted).make([batch(0, [b"a"])])
    assert made.schema.equals(to_arrow_schema(wanted, timezone="UTC"))
    made.validate(full=True)


def test_many_batches_become_one_in_their_order() -> None:
    made = RecordBatches(schema(include_headers=False)).make(
        [
            batch(5, [b"a", None]),
            batch(7, [b"c"], keys=[b"k"], timestamps_ms=[0]),
            batch(9, [b"", b"e"], offsets=[9, 11], keys=[None, b""]),
        ]
    )
    made.validate(full=True)
    assert made.to_pydict() == {
        "key": [None, None, b"k", None, b""],
        "value": [b"a", None, b"c", b"", b"e"],
        "topic": ["orders"] * 5,
        "partition": [3] * 5,
        "offset": [5, 6, 7, 9, 11],
        "timestamp": made["timestamp"].to_pylist(),
        "timestampType": [0] * 5,
    }
    assert made["timestamp"].cast("int64").to_pylist() == [
        *(1_000_000, 1_001_000, 0, 1_000_000, 1_001_000),
    ]


def test_a_time_past_the_last_of_spark_is_that_last_one() -> None:
    """Nanoseconds that a producer took for milliseconds must not stop a reader."""
    last = 9_223_372_036_854_775
    times = [last - 1, last, last + 1, 1_767_268_800 * 10**9, 2**63 - 1]
    wanted = StructType([schema(include_headers=False)["timestamp"]])
    batches = [
        batch(0, [b"x"] * 5, timestamps_ms=times),
        batch(5, [b"x"], timestamps_ms=[-(2**63)]),
    ]
    made = RecordBatches(wanted).make(batches)
    expected = [last - 1, *[last] * 4, -last]
    assert made["timestamp"].cast("int64").to_pylist() == [each * 1_000 for each in expected]


def test_headers_keep_their_order_and_their_absence() -> None:
    headers = {1: (("a", b"1"), ("a", None)), 2: (("b", b""),)}
    made = RecordBatches(schema(include_headers=True)).make(
        [batch(0, [b"x"]), batch(1, [b"x", b"y", b"z"], headers=headers)]
    )
    assert made["headers"].to_pylist() == [
        None,
        None,
        [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        [{"key": "b", "value": b""}],
    ]


def test_only_what_is_asked_for_is_made_and_in_its_order() -> None:
    known = schema(include_headers=False)
    wanted = StructType([known["offset"], known["key"]])
    check_schema(wanted)
    assert RecordBatches(wanted).make([batch(4, [b"a"])]).to_pydict() == {
        "offset": [4],
        "key": [None],
    }


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (StructField("price", IntegerType()), "no column 'price': its columns are key, value,"),
        (StructField("value", StringType()), "value is of type binary, not string: cast it"),
    ],
)
def test_other_columns_and_other_types_are_refused(field: StructField, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        check_schema(StructType([field]))
