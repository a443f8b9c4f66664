"""Streams of real topics with a real Spark: triggers, limits, restarts, and what goes wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster import Cluster
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from source_harness import Option, stream, values

WAIT_S = 120


class Stream:
    """A query that writes what it reads into files, over its runs."""

    def __init__(self, spark: SparkSession, semel: Cluster, folder: Path) -> None:
        self.spark, self.semel, self.checkpoint = spark, semel, folder / "checkpoint"
        self.files = str(folder / "files")

    def start(self, **options: Option) -> StreamingQuery:
        return self._writer(options).start()

    def run(self, **options: Option) -> tuple[list[bytes | None], StreamingQuery]:
        """Read what is available now; returns it."""
        query = self._writer(options).trigger(availableNow=True).start()
        assert query.awaitTermination(WAIT_S)
        return self.found(), query

    def found(self) -> list[bytes | None]:
        """Return all that was read, once each."""
        return values(self.spark.read.parquet(self.files))

    def _writer(self, options: dict[str, Option]) -> DataStreamWriter:
        frame = stream(self.spark, self.semel, **options)
        writer = frame.writeStream.format("parquet").option("path", self.files)
        return writer.option("checkpointLocation", str(self.checkpoint))


@pytest.fixture
def reading(spark: SparkSession, semel: Cluster, tmp_path: Path) -> Stream:
    return Stream(spark, semel, tmp_path)


def digits(*numbers: int) -> list[bytes]:
    return [str(number).encode() for number in numbers]


def test_a_stream_reads_what_comes_and_says_where_it_is(reading: Stream, semel: Cluster) -> None:
    topic = semel.topic(partitions=2)
    semel.send(topic, digits(0, 1), partition=0)
    query = reading.start(subscribe=topic, startingOffsets="earliest")
    try:
        query.processAllAvailable()
        semel.send(topic, digits(2), partition=1)
        query.processAllAvailable()
        assert query.lastProgress is not None
        (source,) = json.loads(query.lastProgress.json)["sources"]
    finally:
        query.stop()
    assert reading.found() == digits(0, 1, 2)
    assert source["endOffset"][topic] == source["latestOffset"][topic] == {"0": 2, "1": 1}
    behind = source["latestOffset"]["@semel"]["behind"]
    assert behind == {topic: {"offsets": 0, "records": 0, "milliseconds": 0}}


def test_a_run_over_available_records_keeps_limits_and_the_next_one_goes_on(
    reading: Stream, semel: Cluster
) -> None:
    topic = semel.topic()
    group = f"progress-of-{topic}"
    semel.send(topic, digits(0, 1, 2, 3, 4))
    options: dict[str, Option] = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 2,
        "kafka.group.id": group,
    }
    found, query = reading.run(**options)
    assert found == digits(0, 1, 2, 3, 4)
    assert [progress.numInputRows for progress in query.recentProgress] == [2, 2, 1]
    semel.send(topic, digits(5))
    found, query = reading.run(**options)
    assert found == digits(0, 1, 2, 3, 4, 5)
    committed = semel.call(semel.client.admin().list_consumer_group_offsets(group))
    assert {str(each): at and at.offset for each, at in committed.items()} == {f"{topic}-0": 6}


def test_a_stream_waits_for_a_minimum(reading: Stream, semel: Cluster) -> None:
    topic = semel.topic()
    query = reading.start(
        subscribe=topic, minOffsetsPerTrigger=2, maxTriggerDelay="1h", includeHeaders=True
    )
    try:
        query.processAllAvailable()
        semel.send(topic, digits(0))
        semel.send(topic, digits(1))
        while query.lastProgress is None or query.lastProgress.numInputRows == 0:
            assert query.exception() is None
        assert query.lastProgress.numInputRows == 2
    finally:
        query.stop()


def test_partitions_that_are_added_while_a_query_runs_are_read_from_their_start(
    reading: Stream, semel: Cluster
) -> None:
    topic = semel.topic(name="grows")
    query = reading.start(subscribePattern="grows-.*", minPartitions=3)
    try:
        query.processAllAvailable()
        semel.call(semel.client.admin().create_partitions(topic, 2))
        semel.send(topic, digits(0, 1, 2), partition=1)
        query.processAllAvailable()
    finally:
        query.stop()
    assert reading.found() == digits(0, 1, 2)


def test_what_is_wrong_from_the_start_ends_the_query_and_is_said(reading: Stream) -> None:
    query = reading.start(subscribe="nowhere")
    with pytest.raises(StreamingQueryException, match=r"not there in the cluster at .*: nowhere"):
        query.awaitTermination(WAIT_S)


def test_a_topic_that_is_deleted_while_a_query_runs_ends_it(
    reading: Stream, semel: Cluster
) -> None:
    topic = semel.topic()
    query = reading.start(subscribe=topic)
    query.processAllAvailable()
    semel.call(semel.client.admin().delete_topic(topic))
    with pytest.raises(StreamingQueryException, match="was deleted; to go on without them, set"):
        query.awaitTermination(WAIT_S)


def rewrite(checkpoint: Path, change: Callable[[str], str]) -> None:
    """Change all offsets of a checkpoint, and take away what says that they were changed."""
    for stored in (checkpoint / "offsets").iterdir():
        if stored.name.isdecimal():
            stored.write_text(change(stored.read_text()))
        else:
            stored.unlink()


def theirs(text: str) -> str:
    version, metadata, offset = text.split("\n")
    ours = json.loads(offset)
    ours["@semel"]["cluster"] = "theirs"
    return "\n".join((version, metadata, json.dumps(ours)))


def test_a_checkpoint_of_another_cluster_is_refused(reading: Stream, semel: Cluster) -> None:
    topic = semel.topic()
    reading.run(subscribe=topic)
    rewrite(reading.checkpoint, theirs)
    with pytest.raises(StreamingQueryException, match="offsets of the cluster theirs, and"):
        reading.run(subscribe=topic)
