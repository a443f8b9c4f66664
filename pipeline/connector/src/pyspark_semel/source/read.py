"""Reads the ranges of one task, as RecordBatches.

The ranges of one task are small: the first records of the next ones are on their way while Spark
takes those of the last. All of them together take no more memory than one large range.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql.types import StructType

from aiosemel import ColumnBatch, ConsumerOptions, LogRange
from aiosemel.errors import (
    InvalidTopicError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from pyspark_semel.connection import Connection
from pyspark_semel.preflight import connect_to, through_outages, unreachable_named
from pyspark_semel.source.columns import RecordBatches
from pyspark_semel.source.data_loss import DataLossReport
from pyspark_semel.source.options import SourceOptions
from pyspark_semel.source.splits import Task

_AHEAD = 4
"""How many ranges of a task are read at once."""


def read(options: SourceOptions, schema: StructType, task: Task) -> Iterator[pa.RecordBatch]:
    """Return the records of a task; the next ones are fetched while Spark takes the last.

    Raises DataLossError for missing records, unless that is allowed, and UnreachableError.
    """
    connection = connect_to(options, task.cluster_id)
    columns = RecordBatches(schema)
    at_once = min(_AHEAD, len(task.ranges))
    reads = [
        _Read(connection, options, each, max(1, options.fetch_max_bytes // at_once))
        for each in task.ranges
    ]
    with unreachable_named(options):
        for reading in _begun_ahead(reads):
            yield from map(columns.make, reading.batches())


def _begun_ahead(reads: "Sequence[_Read]") -> "Iterator[_Read]":
    begun: deque[_Read] = deque()
    for reading in reads:
        reading.begin()
        begun.append(reading)
        if len(begun) == _AHEAD:
            yield begun.popleft()
    yield from begun


class _Read:
    """The read of one range."""

    def __init__(
        self,
        connection: Connection,
        options: SourceOptions,
        log_range: LogRange,
        fetch_max_bytes: int,
    ) -> None:
        self._connection = connection
        self._options = options
        self._range = log_range
        self._data_loss = DataLossReport(fail=options.fail_on_data_loss)
        self._consumer = ConsumerOptions(
            isolation_level=options.isolation_level,
            max_partition_fetch_bytes=fetch_max_bytes,
            fetch_max_bytes=fetch_max_bytes,
            skip_batches=options.skip_batches,
        )
        self._begun: Iterator[Sequence[ColumnBatch]] = iter(())

    def begin(self) -> None:
        """Ask for the first records, and wait for nothing."""
        reader = self._connection.client.read_range(self._range, self._consumer)
        self._begun = self._connection.ahead(partial(through_outages, self._options, reader.read))

    def batches(self) -> Iterator[Sequence[ColumnBatch]]:
        """Return what the log holds of the range; what is gone is reported."""
        partition = self._range.topic_partition
        while True:
            try:
                yield from self._begun
            except OffsetOutOfRangeError as error:
                self._data_loss.report(f"{partition}: {error.message}")
                after = _after_the_gap(self._range, error)
                if after is not None:
                    self._range = after
                    self.begin()
                    continue
            except (InvalidTopicError, UnknownTopicOrPartitionError) as error:
                self._data_loss.report(f"the topic was deleted while it was read: {error.message}")
            return


def _after_the_gap(log_range: LogRange, error: OffsetOutOfRangeError) -> LogRange | None:
    """Return the rest of a range whose log begins later now, if there is one."""
    try:
        log_start = int(error.details["log_start_offset"])
    except (KeyError, ValueError):  # A broker said no offset.
        return None
    if not log_range.start_offset < log_start < log_range.end_offset:
        return None
    return replace(log_range, start_offset=log_start)
