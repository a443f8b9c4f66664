"""What frames must have, and which rows go where."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from aiosemel import EncodedColumn, Headers
from pyspark_semel.errors import RecordError, SchemaError
from pyspark_semel.sink import columns
from pyspark_semel.sink.columns import Rows
from pyspark_semel.sink.encoding import ArrowColumn
from semel.common.v1.records_pb2 import Records
from semel_common.record_batches.encoded_records import VALUES_TAG
from semel_common.record_batches.partitioner import partition_for_key

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
HEADERS = ArrayType(HEADER)
ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRows:
    """Rows for one partition of one topic, as lists."""

    topic: str
    partition: int | None
    values: list[bytes | None]
    keys: list[bytes | None] | None
    headers: Sequence[Headers] | None


def listed(rows: Rows) -> ListedRows:
    return ListedRows(
        topic=rows.topic,
        partition=rows.partition,
        values=items(rows.values),
        keys=None if rows.keys is None else items(rows.keys),
        headers=rows.headers,
    )


def items(column: Sequence[bytes | None] | EncodedColumn) -> list[bytes | None]:
    if isinstance(column, list):
        return column
    assert isinstance(column, ArrowColumn)
    count = len(column)
    found: list[bytes | None] = [*Records.FromString(column.encode(VALUES_TAG, 0, count)).values]
    for absent in column.absent(0, count):
        assert found[absent] == b""
        found[absent] = None
    return found


def schema(**fields: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])  # type: ignore[arg-type]  # types of Spark


def parts(batch: pa.RecordBatch, count: int = 4, topic: str | None = "t") -> list[ListedRows]:
    return [
        listed(rows)
        for name, of_topic in columns.by_topic(batch, topic)
        for rows in columns.by_partition(name, of_topic, count)
    ]


@pytest.mark.parametrize("text", [StringType(), BinaryType()], ids=str)
def test_all_columns_of_the_sink_are_taken(text: object) -> None:
    columns.check(schema(value=text), "t")
    everything = schema(
        key=text, value=text, headers=HEADERS, topic=StringType(), partition=IntegerType()
    )
    columns.check(everything, None)
    columns.check(everything, "t")


def test_what_the_source_has_besides_is_left_out() -> None:
    frame = schema(
        value=BinaryType(),
        offset=LongType(),
        timestamp=TimestampType(),
        timestampType=IntegerType(),
    )
    columns.check(frame, "t")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (schema(key=StringType()), "no column value, but key"),
        (schema(Value=StringType()), "no column value, but Value"),
        (schema(value=StringType(), day=StringType()), "does not write the columns day"),
        (schema(value=LongType()), "value is bigint, not string or binary"),
        (schema(value=StringType(), key=IntegerType()), "key is int, not string or binary"),
        (schema(value=StringType(), partition=LongType()), "partition is bigint, not int"),
        (schema(value=StringType(), topic=BinaryType()), "topic is binary, not string"),
        (
            schema(value=StringType(), headers=MapType(StringType(), BinaryType())),
            "headers is map<string,binary>, not array",
        ),
    ],
    ids=str,
)
def test_a_frame_that_cannot_be_written_is_refused(frame: StructType, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        columns.check(frame, "t")


def test_a_frame_must_say_where_its_rows_go() -> None:
    with pytest.raises(SchemaError, match="neither an option topic nor a column topic"):
        columns.check(schema(value=StringType()), None)


def test_two_columns_of_one_name_are_refused() -> None:
    doubled = StructType([StructField("value", StringType()), StructField("value", StringType())])
    with pytest.raises(SchemaError, match="2 columns value"):
        columns.check(doubled, "t")


def test_rows_without_keys_stay_together() -> None:
    batch = pa.record_batch({"value": ["a", None, "b"]})
    (rows,) = parts(batch)
    assert rows == ListedRows(
        topic="t", partition=None, values=[b"a", None, b"b"], keys=None, headers=None
    )


def test_rows_go_by_key_in_order_and_without_one_anywhere() -> None:
    keys = [b"k%d" % (number % 7) if number % 5 else None for number in range(50)]
    values = [b"%d" % number for number in range(50)]
    found = parts(pa.record_batch({"key": keys, "value": values}))
    for rows in found:
        assert rows.keys is None or all(
            partition_for_key(key or b"", 4) == rows.partition for key in rows.keys
        )
        assert list(map(int, (value or b"" for value in rows.values))) == sorted(
            int(value or b"") for value in rows.values
        )
    assert sorted(value or b"" for rows in found for value in rows.values) == sorted(values)
    assert [rows.values for rows in found if rows.keys is None] == [values[::5]]


@pytest.mark.parametrize("keys", [None, ["x", None, "y", "x"]], ids=["without keys", "with keys"])
@pytest.mark.parametrize("values", [None, ["a", None, "b", "c"]], ids=["without values", "with"])
def test_rows_are_the_same_with_and_without_headers(
    keys: list[str | None] | None, values: list[str | None] | None
) -> None:
    nothing = [None] * 4
    plain = pa.record_batch(
        {
            "key": pa.array(keys or nothing, pa.string()),
            "value": pa.array(values or nothing, pa.string()),
        }
    )
    headed = plain.append_column(
        "headers", pa.array([None, [{"key": "h", "value": b""}], None, None], ARROW_HEADERS)
    )
    assert [replace(rows, headers=None) for rows in parts(headed)] == parts(plain)


def test_a_partition_goes_before_the_key() -> None:
    batch = pa.record_batch(
        {
            "value": ["a", "b", "c"],
            "key": ["x", None, "x"],
            "partition": pa.array([1, 2, None], pa.int32()),
        }
    )
    found = {rows.partition: rows.values for rows in parts(batch)}
    by_key = partition_for_key(b"x", 4)
    expected: dict[int, list[bytes]] = {1: [b"a"], 2: [b"b"]}
    expected.setdefault(by_key, []).append(b"c")
    assert found == expected


@pytest.mark.parametrize("count", [4, 32_767, 32_768, 100_000])
def test_rows_are_parted_in_order_however_many_partitions_there_are(count: int) -> None:
    named = [count - 1, 0, count - 1, 1, 0]
    batch = pa.record_batch(
        {"value": ["0", "1", "2", "3", "4"], "partition": pa.array(named, pa.int32())}
    )
    found = {rows.partition: rows.values for rows in parts(batch, count)}
    assert found == {0: [b"1", b"4"], 1: [b"3"], count - 1: [b"0", b"2"]}


@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_partition_that_is_not_there_is_named(wrong: int) -> None:
    batch = pa.record_batch({"value": ["a"], "partition": pa.array([wrong], pa.int32())})
    with pytest.raises(RecordError, match=f"partition {wrong} of topic t, which has 4"):
        parts(batch)


def test_rows_go_to_the_topics_that_they_name() -> None:
    batch = pa.record_batch({"value": ["a", "b", "c"], "topic": ["x", "y", "x"]})
    found = parts(batch, topic=None)
    assert [(rows.topic, rows.values) for rows in found] == [("x", [b"a", b"c"]), ("y", [b"b"])]
    (all_rows,) = parts(batch, topic="z")
    assert (all_rows.topic, len(all_rows.values)) == ("z", 3)


def test_a_row_without_a_topic_is_refused() -> None:
    batch = pa.record_batch({"value": ["a", "b"], "topic": ["x", None]})
    with pytest.raises(RecordError, match="a row has no topic"):
        parts(batch, topic=None)


def test_headers_stay_with_their_rows() -> None:
    given = [
        None,
        [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
        [],
        [{"key": "g", "value": b""}],
    ]
    batch = pa.record_batch(
        {
            "value": ["a", "b", "c", "d"],
            "headers": pa.array(given, ARROW_HEADERS),
            "partition": pa.array([1, 0, 0, 1], pa.int32()),
        }
    )
    first, second = parts(batch)
    assert (first.values, second.values) == ([b"b", b"c"], [b"a", b"d"])
    assert first.headers == [[("h", b"1"), ("h", None)], []]
    assert second.headers == [[], [("g", b"")]]


def test_a_header_without_a_key_is_refused() -> None:
    headers = pa.array([[{"key": None, "value": b"1"}]], ARROW_HEADERS)
    with pytest.raises(RecordError, match="a header has no key"):
        parts(pa.record_batch({"value": ["a"], "headers": headers}))


def test_a_batch_without_rows_has_no_records() -> None:
    empty = pa.record_batch({"value": pa.array([], pa.string()), "key": pa.array([], pa.string())})
    assert [rows.values for rows in parts(empty)] == [[]]
    assert (
        parts(
            pa.record_batch(
                {"value": pa.array([], pa.string()), "topic": pa.array([], pa.string())}
            ),
            topic=None,
        )
        == []
    )
