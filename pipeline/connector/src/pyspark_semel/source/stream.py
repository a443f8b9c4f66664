"""Streaming reads, as Spark asks for them: in a process of their own, for as long as a query runs.

A new reader does nothing yet: if that raised, Spark would show an error of its own. For tasks,
Spark makes another reader; it gets the partitions of this one, and no more.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import cached_property, partial
from typing import TypeVar

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

from pyspark_semel.connection import Connection
from pyspark_semel.errors import CheckpointError
from pyspark_semel.preflight import cluster_id_of, connect_to, through_outages, unreachable_named
from pyspark_semel.source import columns
from pyspark_semel.source.follow import Follower
from pyspark_semel.source.json_forms import FormError
from pyspark_semel.source.lag import Lag
from pyspark_semel.source.logs import Logs
from pyspark_semel.source.offsets import Json, StreamOffsets, with_lag
from pyspark_semel.source.options import SourceOptions, for_stream
from pyspark_semel.source.read import read
from pyspark_semel.source.splits import Task

_T = TypeVar("_T")


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
        self._call(self._follower.prepare_for_available_now)

    def initialOffset(self) -> Json:  # noqa: N802 - Spark's
        """Return where a new query begins."""
        return self._call(self._follower.initial).to_json()

    def latestOffset(  # noqa: N802 - Spark's
        self, start: Json, limit: ReadLimit
    ) -> Json:
        """Return where the next micro-batch ends."""
        known = _stored(start)
        unlimited = isinstance(limit, ReadAllAvailable)
        latest = partial(
            self._follower.latest,
            known,
            maximum=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            minimum=None if unlimited else self._options.min_offsets_per_trigger,
        )
        return self._call(latest).to_json()

    def reportLatestOffset(self) -> Json | None:  # noqa: N802 - Spark's
        """Return what ``StreamingQueryProgress`` shows: where the logs end, and the lag."""
        known = self._follower.known
        return None if known is None else with_lag(known.to_json(), self._lag.behind)

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """Return what each task reads."""
        begin, stop = _stored(start), _stored(end)
        tasks = self._call(partial(self._follower.tasks, begin, stop))
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one task."""
        task: Task = partition.value
        return read(self._options, self._schema, task)

    def commit(self, end: Json) -> None:
        """Do nothing: progress was reported before, when Spark asked for the next offset."""

    @cached_property
    def _options(self) -> SourceOptions:
        columns.check_schema(self._schema)
        return for_stream(self._given)

    def _call(self, step: Callable[[], Coroutine[object, object, _T]]) -> _T:
        """Do a step of planning; each may be done again."""
        with unreachable_named(self._options):
            return self._connection.call(through_outages(self._options, step))

    @cached_property
    def _connection(self) -> Connection:
        """The cluster that answers when the run begins; the run waits for it from then on."""
        return connect_to(self._options, cluster_id_of(self._options))

    @cached_property
    def _follower(self) -> Follower:
        logs = Logs(self._connection.client, self._options)
        return Follower(logs, self._options, self._lag)

    @cached_property
    def _lag(self) -> Lag:
        return Lag(self._connection.client, self._options)


def _stored(offset: Json) -> StreamOffsets:
    try:
        return StreamOffsets.from_json(offset)
    except FormError as error:
        raise CheckpointError(
            f"the checkpoint holds an offset that the source of Semel has not written ({error}): "
            "give the query a new checkpointLocation, and say with startingOffsets where it begins"
        ) from error
