"""Streaming reads, as Spark asks for them: in a process of their own, for as long as a query runs.

Nothing is done when a reader is made: where that raised, Spark would show an error of its own.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

import pyarrow as pa
from aiosemel import LogRange
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pyspark_semel.connection import Connection, connect
from pyspark_semel.source.follow import Follower
from pyspark_semel.source.logs import Logs
from pyspark_semel.source.offsets import Json, StreamOffsets
from pyspark_semel.source.options import SourceOptions, for_stream
from pyspark_semel.source.read import read


class StreamReader(DataSourceStreamReader):
    """Plans micro-batches on the driver, reads in tasks; Spark pickles it for them."""

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._given = dict(given)
        self._schema = schema

    def initialOffset(self) -> Json:
        """Return where a new query begins."""
        return self._connection.call(self._follower.initial()).to_json()

    def latestOffset(self, start: Json | None = None, limit: ReadLimit | None = None) -> Json:
        begin = StreamOffsets.from_json(start)
        return self._connection.call(self._follower.latest(begin)).to_json()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        ranges = self._connection.call(
            self._follower.ranges(StreamOffsets.from_json(start), StreamOffsets.from_json(end))
        )
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._options, self._schema, partition.value)

    @cached_property
    def _options(self) -> SourceOptions:
        return for_stream(self._given)

    @cached_property
    def _connection(self) -> Connection:
        return connect(self._options.bootstrap, api_timeout_ms=self._options.api_timeout_ms)

    @cached_property
    def _follower(self) -> Follower:
        return Follower(Logs(self._connection.client, self._options), self._options)
