"""Reads one range of a log in a task, as RecordBatches."""

from collections.abc import Iterator

import pyarrow as pa
from aiosemel import ConsumerOptions, LogRange
from pyspark.sql.types import StructType

from pyspark_semel.connection import connect
from pyspark_semel.source.columns import RecordBatches
from pyspark_semel.source.options import SourceOptions


def read(
    options: SourceOptions, schema: StructType, log_range: LogRange
) -> Iterator[pa.RecordBatch]:
    """Return the records of a range; the next ones are fetched while Spark takes the last."""
    connection = connect(options.bootstrap, api_timeout_ms=options.api_timeout_ms)
    columns = RecordBatches(schema)
    reader = connection.client.read_range(
        log_range,
        ConsumerOptions(
            isolation_level=options.isolation_level,
            max_partition_fetch_bytes=options.fetch_max_bytes,
            fetch_max_bytes=options.fetch_max_bytes,
        ),
    )
    for batches in connection.ahead(reader.read):
        yield columns.make(batches)
