"""Batch reads: the records at the load of the frame, whatever comes later."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from pyspark_semel.preflight import (
    cluster_id_of,
    connect_to,
    through_first_outage,
    through_outages,
    unreachable_named,
)
from pyspark_semel.source import columns
from pyspark_semel.source.filters import Narrowing, narrowing
from pyspark_semel.source.logs import Logs
from pyspark_semel.source.options import SourceOptions, for_batch
from pyspark_semel.source.plan import plan
from pyspark_semel.source.read import read
from pyspark_semel.source.splits import Task


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
        """Read the records that no filter excludes."""
        self._options = options
        self._schema = schema
        self._narrowing = narrowing or Narrowing()

    def partitions(self) -> list[InputPartition]:
        """Return what each task reads. Raises UnreachableError as all that asks the cluster."""
        options = self._options
        cluster_id = through_first_outage(options, partial(cluster_id_of, options))
        connection = connect_to(options, cluster_id)
        planning = partial(plan, Logs(connection.client, options), options, self._narrowing)
        with unreachable_named(options):
            tasks = connection.call(through_outages(options, planning))
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one task."""
        task: Task | None = partition.value
        if task is None:  # what Spark makes of no partitions
            return iter(())
        return read(self._options, self._schema, task)


class FilteringBatchReader(DataSourceReader):
    """Reads less where filters allow it.

    Spark refuses any reader that has ``pushFilters`` as long as
    ``spark.sql.python.filterPushdown.enabled`` is false, so this one is only for users who ask for
    it.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._reader = BatchReader(options, schema)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's
        """Note the ranges that can pass, and let Spark still apply all filters."""
        self._reader = BatchReader(self._options, self._schema, narrowing(filters))
        return filters

    def partitions(self) -> list[InputPartition]:
        """Return what each task reads."""
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one task."""
        return self._reader.read(partition)
