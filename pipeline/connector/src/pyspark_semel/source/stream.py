"""Streaming reads, as Spark asks for them: in a process of their own, for as long as a query runs.

Nothing is done when a reader is made: where that raised, Spark would show an error of its own. For
tasks, Spark makes another reader; it knows of this one what is in the partitions, and no more.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from aiosemel import LogRange
from pyspark_semel.connection import Connection, connect
from pyspark_semel.errors import CheckpointError
from pyspark_semel.source import columns
from pyspark_semel.source.follow import Follower
from pyspark_semel.source.logs import Logs
from pyspark_semel.source.offsets import Json, OffsetsError, StreamOffsets
from pyspark_semel.source.options import SourceOptions, for_stream
from pyspark_semel.source.read import read


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, reads in tasks; Spark pickles it for them."""

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._given = dict(given)
        self._schema = schema

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        """Return what limits a micro-batch, unless the trigger says that nothing does."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Note where the logs end now: this run reads no further."""
        self._connection.call(self._follower.prepare_for_available_now())

    def initialOffset(self) -> Json:  # noqa: N802 - Spark's
        """Return where a new query begins."""
        return self._connection.call(self._follower.initial()).to_json()

    def latestOffset(  # noqa: N802 - Spark's
        self, start: Json, limit: ReadLimit
    ) -> Json:
        """Return where the next micro-batch ends."""
        unlimited = isinstance(limit, ReadAllAvailable)
        latest = self._follower.latest(
            _stored(start),
            maximum=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            minimum=None if unlimited else self._options.min_offsets_per_trigger,
        )
        return self._connection.call(latest).to_json()

    def reportLatestOffset(self) -> Json | None:  # noqa: N802 - Spark's
        """Return where the logs ended when that was last asked, for ``StreamingQueryProgress``."""
        known = self._follower.known
        return None if known is None else known.to_json()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """Return one range of a log for each task."""
        ranges = self._follower.ranges(_stored(start), _stored(end))
        return [InputPartition(each) for each in self._connection.call(ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one range."""
        log_range: LogRange = partition.value
        return read(self._options, self._schema, log_range)

    def commit(self, end: Json) -> None:
        """Do nothing: progress was reported before, when Spark asked for the next offset."""

    @cached_property
    def _options(self) -> SourceOptions:
        columns.check_schema(self._schema)
        return for_stream(self._given)

    @cached_property
    def _connection(self) -> Connection:
        return connect(
            self._options.bootstrap,
            api_timeout_ms=self._options.api_timeout_ms,
            security=self._options.security,
        )

    @cached_property
    def _follower(self) -> Follower:
        return Follower(Logs(self._connection.client, self._options), self._options)


def _stored(offset: Json) -> StreamOffsets:
    try:
        return StreamOffsets.from_json(offset)
    except OffsetsError as error:
        raise CheckpointError(
            f"the checkpoint holds an offset that the source of Semel has not written ({error}): "
            "give the query a new checkpointLocation, and say with startingOffsets where it begins"
        ) from error
