"""The columns of the source, which are those of Kafka's, and how records become a RecordBatch.

No Python code runs for a single record, except for headers, which are a list for each.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from aiosemel import ColumnBatch, Headers
from pyspark_semel.errors import SchemaError

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_LAST_TIME_MS = ((1 << 63) - 1) // 1_000
"""Of a timestamp in Spark, which counts microseconds; producers may set later ones."""
_CREATE_TIME = 0
"""Kafka's number of the only kind of timestamps that there is here."""
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
HEADERS = StructField("headers", ArrayType(_HEADER))
COLUMNS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
"""As long as headers are not asked for."""

Batches = Sequence[ColumnBatch]
"""Records of one partition, in offset order."""


def schema(*, include_headers: bool) -> StructType:
    """Return the columns of the source."""
    return StructType([*COLUMNS.fields, HEADERS]) if include_headers else COLUMNS


def check_schema(wanted: StructType) -> None:
    """Raise SchemaError unless these are some of the columns, in any order."""
    known = {field.name: field.dataType for field in schema(include_headers=True)}
    for field in wanted:
        if field.name not in known:
            raise SchemaError(
                f"the source has no column {field.name!r}: its columns are {', '.join(known)}"
            )
        if field.dataType != known[field.name]:
            raise SchemaError(
                f"column {field.name} is of type {known[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}: cast it after the load"
            )


class RecordBatches:
    """Makes a RecordBatch of records, with the columns of a schema."""

    def __init__(self, wanted: StructType) -> None:
        """Take a schema that was checked."""
        self._schema = to_arrow_schema(wanted, timezone="UTC")
        self._makers = [_MAKERS[field.name] for field in wanted]

    def make(self, batches: Batches) -> pa.RecordBatch:
        """Return the records of all these as one."""
        arrays = [make(batches) for make in self._makers]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _count(batches: Batches) -> int:
    return sum(map(len, batches))


def _keys(batches: Batches) -> pa.Array:
    if all(batch.keys is None for batch in batches):
        return pa.nulls(_count(batches), pa.binary())
    keys = (batch.keys or [None] * len(batch) for batch in batches)
    return pa.array(list(chain.from_iterable(keys)), pa.binary())


def _values(batches: Batches) -> pa.Array:
    return pa.array(list(chain.from_iterable(batch.values for batch in batches)), pa.binary())


def _topics(batches: Batches) -> pa.Array:
    return pa.repeat(pa.scalar(batches[0].topic_partition.topic, pa.string()), _count(batches))


def _partitions(batches: Batches) -> pa.Array:
    return pa.repeat(pa.scalar(batches[0].topic_partition.partition, pa.int32()), _count(batches))


def _offsets(batches: Batches) -> pa.Array:
    return pa.concat_arrays(
        [
            pc.add(_numbers(len(run)), run.start)
            if isinstance(run, range)
            else pa.array(run, pa.int64())
            for run in _runs(batches)
        ]
    )


def _runs(batches: Batches) -> list[Sequence[int]]:
    """Return the offsets, with those of batches that follow one another in one range."""
    runs: list[Sequence[int]] = []
    for batch in batches:
        run, last = batch.offsets, runs[-1] if runs else None
        if isinstance(run, range) and isinstance(last, range) and last.stop == run.start:
            runs[-1] = range(last.start, run.stop)
        else:
            runs.append(run)
    return runs


def _numbers(count: int) -> pa.Array:
    """Return 0, 1, 2 and so on."""
    return _many_numbers(1 << count.bit_length()).slice(0, count)


@cache
def _many_numbers(count: int) -> pa.Array:
    return pa.array(range(count), pa.int64())


def _timestamps(batches: Batches) -> pa.Array:
    times_ms = np.clip(_times_ms(batches), -_LAST_TIME_MS, _LAST_TIME_MS)
    return pa.array(times_ms).cast(pa.timestamp("ms", tz="UTC")).cast(_TIMESTAMP)


def _times_ms(batches: Batches) -> npt.NDArray[np.int64]:
    """Return the times of all; those of batches that were sent at once, and have one, are cheap."""
    columns = [batch.timestamps_ms for batch in batches]
    if all(times.count(times[0]) == len(times) for times in columns):
        firsts, counts = [times[0] for times in columns], [len(times) for times in columns]
        return np.repeat(np.array(firsts, np.int64), counts)
    return np.fromiter(chain.from_iterable(columns), np.int64, _count(batches))


def _timestamp_types(batches: Batches) -> pa.Array:
    return pa.repeat(pa.scalar(_CREATE_TIME, pa.int32()), _count(batches))


def _headers(batches: Batches) -> pa.Array:
    return pa.array(
        [
            _header_rows(batch.headers.get(position))
            for batch in batches
            for position in range(len(batch))
        ],
        to_arrow_schema(StructType([HEADERS]), timezone="UTC").field(0).type,
    )


def _header_rows(headers: Headers | None) -> list[dict[str, str | bytes | None]] | None:
    return [{"key": key, "value": value} for key, value in headers] if headers else None


_MAKERS: dict[str, Callable[[Batches], pa.Array]] = {
    "key": _keys,
    "value": _values,
    "topic": _topics,
    "partition": _partitions,
    "offset": _offsets,
    "timestamp": _timestamps,
    "timestampType": _timestamp_types,
    "headers": _headers,
}
