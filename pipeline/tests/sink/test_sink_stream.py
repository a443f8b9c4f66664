"""Streams by a real Spark, and what their checkpoints are good for."""

import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from cluster import Cluster
from crashes.faults import Plan
from crashes.job import Job, fill, start
from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from aiosemel import IsolationLevel
from pyspark_semel import register

UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED
RUNS_MAX = 20


class Streams:
    """Streams of lines into one topic."""

    def __init__(self, spark: SparkSession, semel: Cluster, folder: Path) -> None:
        self.spark = spark
        self.semel = semel
        self.topic = semel.topic(2)
        self.lines = folder / "lines"
        self.checkpoint = folder / "checkpoint"
        self.given = {"bootstrap.servers": semel.bootstrap, "topic": self.topic}

    def add(self, number: int) -> None:
        """Add a file, which is a micro-batch."""
        self.lines.mkdir(exist_ok=True)
        (self.lines / f"{number}.txt").write_text(f"{number}\n", "utf-8")

    def run(self, checkpoint: Path | None = None, **options: str) -> None:
        """Write all that is there, and not written yet."""
        lines = self._lines(checkpoint)
        query = lines.format("semel").options(**self.given, **options).start()
        query.awaitTermination()

    def run_for_each(self, write: Callable[[DataFrame, int], None]) -> None:
        """Give each micro-batch to a function."""
        self._lines(None).foreachBatch(write).start().awaitTermination()

    def save(self, frame: DataFrame, **options: str) -> None:
        """Write a batch."""
        given = {**self.given, **options}
        frame.write.format("semel").mode("append").options(**given).save()

    def forget_last_commit(self) -> None:
        """Let Spark do its last micro-batch again, as after a crash before it was noted."""
        last = max(self.checkpoint.glob("commits/[0-9]*"), key=lambda path: int(path.name))
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink()

    def written(self) -> list[bytes | None]:
        """Return what readers see."""
        return sorted(self.semel.values(self.topic), key=str)

    def _lines(self, checkpoint: Path | None) -> DataStreamWriter:
        frame = self.spark.readStream.option("maxFilesPerTrigger", 1).text(str(self.lines))
        writer = frame.writeStream.trigger(availableNow=True)
        return writer.option("checkpointLocation", str(checkpoint or self.checkpoint))


@pytest.fixture
def streams(spark: SparkSession, semel: Cluster, tmp_path: Path) -> Streams:
    return Streams(spark, semel, tmp_path)


def test_a_stream_goes_on_where_it_was_and_repeats_nothing(streams: Streams) -> None:
    streams.add(0)
    streams.add(1)
    streams.run()
    streams.forget_last_commit()
    streams.add(2)
    streams.run()
    assert streams.written() == [b"0", b"1", b"2"]
    assert len(streams.semel.values(streams.topic, UNCOMMITTED)) == 3


def test_an_id_is_not_for_two_checkpoints_unless_it_is_taken_over(
    streams: Streams, tmp_path: Path
) -> None:
    streams.add(0)
    streams.run(transactionalId=streams.topic)
    other = tmp_path / "other"
    with pytest.raises(PySparkException, match="belongs to another query"):
        streams.run(other, transactionalId=streams.topic)
    assert streams.written() == [b"0"]
    streams.run(other, transactionalId=streams.topic, transactionalIdReset="true")
    assert streams.written() == [b"0", b"0"]


def test_a_checkpoint_from_before_is_refused(streams: Streams, tmp_path: Path) -> None:
    streams.add(0)
    streams.run()
    copy = tmp_path / "copy"
    shutil.copytree(streams.checkpoint, copy)
    for number in (1, 2):
        streams.add(number)
    streams.run()
    with pytest.raises(PySparkException, match="the checkpoint is older than the written versions"):
        streams.run(copy)
    assert streams.written() == [b"0", b"1", b"2"]


def test_a_topic_that_is_gone_is_named_and_its_rows_are_written_to_the_next_one(
    streams: Streams,
) -> None:
    admin = streams.semel.client.admin()
    streams.add(0)
    streams.run()
    streams.semel.call(admin.delete_topic(streams.topic))
    streams.add(1)
    with pytest.raises(PySparkException, match=f"there is no topic '{streams.topic}'"):
        streams.run()
    streams.semel.call(admin.create_topic(streams.topic, partitions=1))
    streams.run()
    assert streams.written() == [b"1"]


def test_for_each_batch_has_the_same_guarantee(streams: Streams) -> None:
    streams.add(0)
    streams.run_for_each(lambda frame, _: streams.save(frame))
    streams.forget_last_commit()
    streams.add(1)
    streams.run_for_each(lambda frame, _: streams.save(frame))
    assert streams.written() == [b"0", b"1"]
    assert len(streams.semel.values(streams.topic, UNCOMMITTED)) == 2


def test_two_writes_of_one_batch_need_two_ids(streams: Streams) -> None:
    def twice(frame: DataFrame, batch: int) -> None:
        streams.save(frame)
        streams.save(frame, transactionalId=f"{streams.topic}-second")
        if batch:
            streams.save(frame)

    streams.add(0)
    streams.run_for_each(twice)
    streams.add(1)
    with pytest.raises(PySparkException, match="needs a transactionalId of its own"):
        streams.run_for_each(twice)
    assert streams.written() == [b"0", b"0", b"1", b"1"]


def test_a_job_group_within_for_each_batch_is_refused_before_anything_is_written(
    streams: Streams,
) -> None:
    """All runs would look like one, by which the micro-batch had been written before."""

    def write(frame: DataFrame, _: int) -> None:
        streams.spark.sparkContext.setJobGroup("nightly", "each night")
        streams.save(frame)

    streams.add(0)
    with pytest.raises(PySparkException, match="setJobGroup"):
        streams.run_for_each(write)
    assert streams.semel.values(streams.topic, UNCOMMITTED) == []


def test_a_thread_within_for_each_batch_has_the_same_guarantee(streams: Streams) -> None:
    def write(frame: DataFrame, _: int) -> None:
        def save() -> None:
            register(frame.sparkSession)
            streams.save(frame)

        with ThreadPoolExecutor() as threads:
            threads.submit(inheritable_thread_target(frame.sparkSession)(save)).result()

    streams.add(0)
    streams.run_for_each(write)
    streams.forget_last_commit()
    streams.add(1)
    streams.run_for_each(write)
    assert streams.written() == [b"0", b"1"]
    assert len(streams.semel.values(streams.topic, UNCOMMITTED)) == 2


def test_jobs_within_for_each_batch_may_have_tags(streams: Streams) -> None:
    failures = iter(["after the write"])

    def write(frame: DataFrame, _: int) -> None:
        streams.spark.sparkContext.addJobTag("nightly")
        streams.save(frame)
        if reason := next(failures, None):
            raise RuntimeError(reason)

    streams.add(0)
    with pytest.raises(PySparkException, match="after the write"):
        streams.run_for_each(write)
    streams.run_for_each(write)
    assert streams.written() == [b"0"]


def test_a_whole_result_is_written_each_time(streams: Streams) -> None:
    def run() -> None:
        lines = streams.spark.readStream.option("maxFilesPerTrigger", 1).text(str(streams.lines))
        counted = lines.groupBy().count().selectExpr("cast(count as string) value")
        writer = counted.writeStream.format("semel").outputMode("complete")
        writer = writer.options(**streams.given, checkpointLocation=str(streams.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    streams.add(0)
    streams.add(1)
    run()
    assert streams.written() == [b"1", b"2"]


def test_records_are_there_once_whatever_fails(
    spark: SparkSession, semel: Cluster, tmp_path: Path
) -> None:
    source, topic = semel.topic(4), semel.topic(4)
    expected = fill(semel, source, batches=4, rows=48)
    plan = Plan(
        folder=str(tmp_path),
        fail_before_commit=(0,),
        fail_after_commit=(1, 3),
        fail_task=15,
    )
    job = Job(
        source=source,
        rows=48,
        topic=topic,
        bootstrap=semel.bootstrap,
        checkpoint=str(tmp_path / "checkpoint"),
        plan=plan,
        tasks=2,
    )
    for _ in range(RUNS_MAX):
        query = start(spark, job)
        with suppress(PySparkException):
            query.awaitTermination()
        error = query.exception()
        if error is None:
            break
        assert "PlannedError" in str(error)
    else:
        pytest.fail(f"{RUNS_MAX} runs have failed as planned, and none has come to its end")
    assert Counter(semel.values(topic)) == Counter(expected)
    notes = (tmp_path / "notes").read_text("utf-8").split("\n")
    assert {"failure before commit", "failure after commit", "replay", "abort"} <= set(notes)
