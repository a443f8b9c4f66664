"""Reads one range of a log in a task, as RecordBatches."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.types import StructType

from aiosemel import ConsumerOptions, LogRange
from aiosemel.errors import (
    InvalidTopicError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from pyspark_semel.connection import Connection, connect
from pyspark_semel.source.columns import RecordBatches
from pyspark_semel.source.losses import Losses
from pyspark_semel.source.options import SourceOptions


def read(
    options: SourceOptions, schema: StructType, log_range: LogRange
) -> Iterator[pa.RecordBatch]:
    """Return the records of a range; the next ones are fetched while Spark takes the last.

    Raises DataLossError for what is gone, unless that was allowed.
    """
    connection = connect(
        options.bootstrap, api_timeout_ms=options.api_timeout_ms, security=options.security
    )
    losses = Losses(fail=options.fail_on_data_loss)
    columns = RecordBatches(schema)
    left = log_range
    while True:
        try:
            yield from _read(connection, options, columns, left)
        except OffsetOutOfRangeError as error:
            losses.report(f"{log_range.topic_partition}: {error.message}")
            after = _after_the_gap(left, error)
            if after is not None:
                left = after
                continue
        except (InvalidTopicError, UnknownTopicOrPartitionError) as error:
            losses.report(f"the topic was deleted while it was read: {error.message}")
        return


def _read(
    connection: Connection, options: SourceOptions, columns: RecordBatches, log_range: LogRange
) -> Iterator[pa.RecordBatch]:
    reader = connection.client.read_range(
        log_range,
        ConsumerOptions(
            isolation_level=options.isolation_level,
            max_partition_fetch_bytes=options.fetch_max_bytes,
            fetch_max_bytes=options.fetch_max_bytes,
            skip_batches=options.skip_batches,
        ),
    )
    return map(columns.make, connection.ahead(reader.read))


def _after_the_gap(log_range: LogRange, error: OffsetOutOfRangeError) -> LogRange | None:
    """Return what is left of a range whose log begins later now; None: nothing."""
    try:
        log_start = int(error.details["log_start_offset"])
    except (KeyError, ValueError):  # A broker said no offset.
        return None
    if not log_range.start_offset < log_start < log_range.end_offset:
        return None
    return replace(log_range, start_offset=log_start)
