"""Batch reads: what is there when the frame is loaded, whatever comes later."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from aiosemel import LogRange
from pyspark_semel.connection import connect
from pyspark_semel.source import columns
from pyspark_semel.source.filters import Narrowing, narrowing
from pyspark_semel.source.logs import Logs
from pyspark_semel.source.options import SourceOptions, for_batch
from pyspark_semel.source.plan import plan
from pyspark_semel.source.read import read


def reader(given: Mapping[str, str], schema: StructType) -> DataSourceReader:
    """Return what reads a batch; raises OptionError, SchemaError."""
    columns.check_schema(schema)
    options = for_batch(given)
    return (FilteringBatchReader if options.pushdown else BatchReader)(options, schema)


class BatchReader(DataSourceReader):
    """Plans on the driver, reads in tasks; Spark pickles it in between."""

    def __init__(
        self, options: SourceOptions, schema: StructType, narrowing: Narrowing | None = None
    ) -> None:
        """Read what is not narrowed away."""
        self._options = options
        self._schema = schema
        self._narrowing = narrowing or Narrowing()

    def partitions(self) -> list[InputPartition]:
        """Return one range of a log for each task."""
        options = self._options
        connection = connect(
            options.bootstrap, api_timeout_ms=options.api_timeout_ms, security=options.security
        )
        ranges = connection.call(plan(Logs(connection.client, options), options, self._narrowing))
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one range."""
        log_range: LogRange | None = partition.value
        if log_range is None:  # what Spark makes of no partitions
            return iter(())
        return read(self._options, self._schema, log_range)


class FilteringBatchReader(DataSourceReader):
    """Reads less where filters allow it.

    Spark refuses any reader that has ``pushFilters`` as long as
    ``spark.sql.python.filterPushdown.enabled`` is false, so this one is only for who asks for it.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._reader = BatchReader(options, schema)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's
        """Note what can pass, and let Spark apply all filters all the same."""
        self._reader = BatchReader(self._options, self._schema, narrowing(filters))
        return filters

    def partitions(self) -> list[InputPartition]:
        """Return one range of a log for each task."""
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one range."""
        return self._reader.read(partition)
