"""Tiny frames of records, as the source gives them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

RECORD = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
STORED = datetime(2026, 1, 1, tzinfo=UTC)
ORDER = {
    "line": 1,
    "id": "2015-000001",
    "date": "2015-03-01",
    "time": "11:38:36",
    "name": "hawaiian",
    "size": "M",
    "type": "classic",
    "price": "13.25",
}


def order(**changes: str | int | None) -> bytes:
    """An order line as JSON; with None, a field is left out."""
    fields = {**ORDER, **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def table(*values: bytes | None, keys: Sequence[bytes] | None = None) -> pa.Table:
    """Values as records of a partition. From Arrow, Spark needs no Python to make a frame."""
    count = len(values)
    columns = {
        "key": pa.array(keys or [b"key"] * count, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "topic": pa.array(["orders"] * count, pa.string()),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([STORED] * count, pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


def records(spark: SparkSession, *values: bytes | None) -> DataFrame:
    """A frame of records with these values."""
    return spark.createDataFrame(table(*values))
