"""A source and a sink that do nothing: what Spark itself takes for a source and a sink in Python.

The source hands out one Arrow batch again and again, of the columns and the size that Semel's has;
the sink counts. No connector in Python can be faster than these, whatever it reads from: what they
take is Spark's Java, its Python, and the rows that go to and fro between the two.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from aiosemel.memory import keep_freed_memory
from bench.spark.figures import PARTITIONS
from pyspark_semel.source.columns import COLUMNS

ROWS, SIZE = "rows", "sizeBytes"
"""Options of the source: how many rows there are, and how large their values are."""
_BATCH_BYTES = 4 << 20
"""As much as Semel's source makes of one fetch."""


@dataclass(frozen=True, slots=True)
class _Counted(WriterCommitMessage):
    """What a task tells the driver."""

    rows: int


class Nothing(DataSource):
    """The format ``nothing``. Spark gives options with names in lower case."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format`` is given."""
        return "nothing"

    def schema(self) -> StructType:
        """Return the columns of Semel's source."""
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's
        """Return what reads a batch."""
        return _Reader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's
        """Return what reads a stream."""
        return _StreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002 - Spark's
        """Return what writes a batch."""
        return _Writer()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: ARG002, N802 - Spark's
        """Return what writes a stream."""
        return _StreamWriter()


class _Reader(DataSourceReader):
    def __init__(self, given: Mapping[str, str]) -> None:
        self._rows, self._size = int(given[ROWS]), int(given[SIZE.lower()])

    def partitions(self) -> Sequence[InputPartition]:
        return _parts(0, self._rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(partition, self._size)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Its offsets are numbers of rows."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._rows, self._size = int(given[ROWS]), int(given[SIZE.lower()])
        self._maximum = int(given["maxoffsetspertrigger"])

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        return ReadMaxRows(self._maximum)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Do nothing: there are never more rows than there are."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's
        return {ROWS: 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's
        assert isinstance(limit, ReadMaxRows | ReadAllAvailable)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._rows
        return {ROWS: min(self._rows, start[ROWS] + most)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return _parts(start[ROWS], end[ROWS])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(partition, self._size)


class _Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Counted:
        return _count(iterator)


class _StreamWriter(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Counted:
        return _count(iterator)


def register(spark: SparkSession) -> None:
    """Make ``format("nothing")`` known to a session."""
    spark.dataSource.register(Nothing)


def _parts(begin: int, end: int) -> Sequence[InputPartition]:
    """Part the rows between two of them among as many tasks as topics have partitions."""
    bounds = (begin + (end - begin) * part // PARTITIONS for part in range(PARTITIONS + 1))
    return [InputPartition(range(*each)) for each in pairwise(bounds)]


def _batches(partition: InputPartition, size: int) -> Iterator[pa.RecordBatch]:
    _spare_memory()
    left = len(partition.value)
    whole = _batch(max(1, _BATCH_BYTES // size), size)
    while left:
        yield whole.slice(0, left)
        left -= min(left, len(whole))


def _count(batches: Iterator[pa.RecordBatch]) -> _Counted:
    _spare_memory()
    return _Counted(sum(map(len, batches)))


@cache
def _batch(rows: int, size: int) -> pa.RecordBatch:
    columns = {
        "key": [str(number).encode() for number in range(rows)],
        "value": [bytes(size)] * rows,
        "topic": ["nothing"] * rows,
        "partition": [0] * rows,
        "offset": list(range(rows)),
        "timestamp": [0] * rows,
        "timestampType": [0] * rows,
    }
    return pa.RecordBatch.from_pydict(columns, schema=to_arrow_schema(COLUMNS, timezone="UTC"))


def _spare_memory() -> None:
    """Do with this process's memory what Semel's connector does: see its ``connection.py``."""
    keep_freed_memory()
    gc.collect()
    gc.freeze()
