"""Sources on a real cluster: as Spark uses them, and the parts beneath, without Spark."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from cluster import Cluster
from pyspark.sql import DataFrame, SparkSession

from aiosemel import LogRange, SemelClient, TopicPartition
from pyspark_semel.source.follow import Follower
from pyspark_semel.source.lag import Lag
from pyspark_semel.source.logs import Logs
from pyspark_semel.source.offsets import StreamOffsets
from pyspark_semel.source.options import for_stream
from pyspark_semel.source.splits import Task

Option = str | int | bool


def options_of(semel: Cluster, options: Mapping[str, Option]) -> dict[str, str]:
    """Return options as Spark hands them over."""
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
    return {"bootstrap.servers": semel.bootstrap, **texts}


def batch(spark: SparkSession, semel: Cluster, **options: Option) -> DataFrame:
    """Load a batch."""
    return spark.read.format("semel").options(**options_of(semel, options)).load()


def stream(spark: SparkSession, semel: Cluster, **options: Option) -> DataFrame:
    """Load a stream."""
    return spark.readStream.format("semel").options(**options_of(semel, options)).load()


def values(frame: DataFrame) -> list[bytes | None]:
    """Return the values of a frame, sorted."""
    found = [None if row.value is None else bytes(row.value) for row in frame.collect()]
    return sorted(found, key=lambda value: value or b"")


class Run:
    """One run of a query over some topics: the part of the source that lives on the driver."""

    def __init__(self, semel: Cluster, client: SemelClient, options: Mapping[str, Option]) -> None:
        self._semel = semel
        parsed = for_stream(options_of(semel, options))
        self.lag = Lag(client, parsed)
        self._follower = Follower(Logs(client, parsed), parsed, self.lag)

    def initial(self) -> StreamOffsets:
        return self._semel.call(self._follower.initial())

    def prepare(self) -> None:
        self._semel.call(self._follower.prepare_for_available_now())

    def latest(
        self, start: StreamOffsets, *, maximum: int | None = None, minimum: int | None = None
    ) -> StreamOffsets:
        latest = self._follower.latest(start, maximum=maximum, minimum=minimum)
        return self._semel.call(latest)

    def tasks(self, start: StreamOffsets, end: StreamOffsets) -> list[Task]:
        return self._semel.call(self._follower.tasks(start, end))

    def ranges(self, start: StreamOffsets, end: StreamOffsets) -> list[LogRange]:
        return [each for task in self.tasks(start, end) for each in task.ranges]

    def offsets(self, start: StreamOffsets, end: StreamOffsets) -> dict[str, tuple[int, int]]:
        """Return what a micro-batch reads, by partition."""
        return {
            str(each.topic_partition): (each.start_offset, each.end_offset)
            for each in self.ranges(start, end)
        }


@contextmanager
def run(semel: Cluster, **options: Option) -> Iterator[Run]:
    """Start a run, with a client of its own."""
    client = SemelClient(semel.bootstrap)
    semel.call(client.open())
    try:
        yield Run(semel, client, options)
    finally:
        semel.call(client.close())


def moved(offsets: StreamOffsets, positions: Mapping[TopicPartition, int]) -> StreamOffsets:
    """Return offsets with other positions."""
    return replace(offsets, positions={**offsets.positions, **positions}, initial=False, began=None)
