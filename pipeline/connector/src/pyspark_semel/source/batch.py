"""Batch reads: what is there when the frame is loaded, whatever comes later."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from aiosemel import LogRange, OffsetSpec
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_semel.connection import connect
from pyspark_semel.source import columns
from pyspark_semel.source.logs import Logs
from pyspark_semel.source.options import SourceOptions, for_batch
from pyspark_semel.source.read import read


def reader(given: Mapping[str, str], schema: StructType) -> DataSourceReader:
    """Return what reads a batch; raises OptionError, SchemaError."""
    columns.check_schema(schema)
    return BatchReader(for_batch(given), schema)


class BatchReader(DataSourceReader):
    """Plans on the driver, reads in tasks; Spark pickles it in between."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return one range of a log for each task."""
        options = self._options
        connection = connect(options.bootstrap, api_timeout_ms=options.api_timeout_ms)
        ranges = connection.call(_plan(Logs(connection.client, options), options))
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one range."""
        if partition.value is None:  # what Spark makes of no partitions
            return iter(())
        return read(self._options, self._schema, partition.value)


async def _plan(logs: Logs, options: SourceOptions) -> list[LogRange]:
    seen = await logs.look_for_all()
    starts = await logs.starting(seen.partitions, options.starting or OffsetSpec.EARLIEST)
    ends = await logs.ending(seen.partitions, options.ending)
    return [
        LogRange(
            topic=each.topic,
            topic_id=seen.topic_ids[each.topic],
            partition=each.partition,
            start_offset=starts[each],
            end_offset=ends[each],
        )
        for each in seen.partitions
        if starts[each] < ends[each]
    ]
