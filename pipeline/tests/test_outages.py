"""A cluster that is away: a stream waits for it, a batch says how long it has waited, and a wrong
address is known at once. A cluster that another one has replaced is not taken for it.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer

import cluster as clusters
import pyarrow as pa
import pytest
from cluster import Cluster
from pyspark.sql import DataFrame, SparkSession
from source_harness import options_of, stream

from aiosemel import JointHandle
from aiosemel.errors import InconsistentClusterIdError
from pyspark_semel import preflight
from pyspark_semel.errors import UnreachableError
from pyspark_semel.preflight import cluster_id_of, connect_to
from pyspark_semel.sink import commit_or_abort
from pyspark_semel.sink import options as sink_options
from pyspark_semel.sink.topics import checked
from pyspark_semel.sink.write import receipts_of, write
from pyspark_semel.source.batch import reader
from pyspark_semel.source.columns import COLUMNS
from pyspark_semel.source.options import for_batch
from pyspark_semel.source.read import read
from pyspark_semel.source.splits import Task

WAIT_S = 120


@pytest.fixture(scope="module")
def fragile(
    spark: SparkSession,  # noqa: ARG001 - it comes first
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """A cluster whose services go and come back."""
    with clusters.cluster(tmp_path_factory.mktemp("fragile"), brokers=1) as started:
        yield started


def away(semel: Cluster) -> None:
    for name in semel.processes.names:
        semel.call(semel.processes.kill(name))


def back(semel: Cluster) -> None:
    for name in semel.processes.names:
        semel.call(semel.processes.start(name, wait=False))
    semel.call(semel.processes.wait_ready())


def test_a_stream_goes_on_after_an_outage_that_is_longer_than_a_call_may_take(
    spark: SparkSession, fragile: Cluster, tmp_path: Path
) -> None:
    topic, copy = fragile.topic(), fragile.topic()
    brief = {"default.api.timeout.ms": 500}
    frame = stream(spark, fragile, subscribe=topic, startingOffsets="earliest", **brief)
    writer = frame.select("value").writeStream.format("semel").option("topic", copy)
    writer = writer.options(**options_of(fragile, brief))
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    planning = reader(options_of(fragile, {"subscribe": topic, **brief}), COLUMNS)
    try:
        fragile.send(topic, [b"before"])
        query.processAllAvailable()
        planning.partitions()
        away(fragile)
        with pytest.raises(UnreachableError, match=r"within 500 ms.* default\.api\.timeout\.ms"):
            planning.partitions()
        back(fragile)
        fragile.send(topic, [b"after"])
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        query.stop()
    assert fragile.values(copy) == [b"before", b"after"]


def test_a_task_of_a_batch_names_the_option_that_says_how_long_it_waits(fragile: Cluster) -> None:
    topic = fragile.topic()
    fragile.send(topic, [b"a"])
    brief = {"default.api.timeout.ms": 500}
    planned = reader(options_of(fragile, {"subscribe": topic, **brief}), COLUMNS)
    (partition,) = planned.partitions()
    sink = checked(sink_options.of_batch(options_of(fragile, {"topic": topic, **brief})))
    handle = JointHandle(transactional_id=topic, txn_version=0, owner="o", run="r")
    away(fragile)
    with pytest.raises(UnreachableError, match=r"within 500 ms.* default\.api\.timeout\.ms"):
        list(planned.read(partition))
    rows = iter([pa.record_batch({"value": ["a"]})])
    with pytest.raises(UnreachableError, match=r"within 500 ms.* default\.api\.timeout\.ms"):
        write(sink, handle, rows, name="t")
    back(fragile)


def test_a_batch_that_may_wait_does_so_from_its_beginning_on(fragile: Cluster) -> None:
    """As a batch in ``foreachBatch`` does, which may begin in the middle of an outage."""
    topic = fragile.topic()
    fragile.send(topic, [b"a"])
    patient: dict[str, str | int] = {"default.api.timeout.ms": 501, "maxOutage": "5m"}
    planning = reader(options_of(fragile, {"subscribe": topic, **patient}), COLUMNS)
    sink = sink_options.of_batch(options_of(fragile, {"topic": topic, **patient}))
    handle = JointHandle(transactional_id=topic, txn_version=0, owner="o", run="r")

    is_back = Event()

    def run() -> None:
        (partition,) = planning.partitions()
        assert is_back.wait(60)
        away(fragile)
        coming = Timer(2, back, [fragile])
        coming.start()
        assert len(list(planning.read(partition))) == 1
        coming.join()
        rows = iter([pa.record_batch({"value": ["b"]})])
        commit_or_abort.commit(sink, receipts_of([write(checked(sink), handle, rows, name="t")]))

    away(fragile)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run)
        with pytest.raises(TimeoutError):
            running.result(timeout=5)
        back(fragile)
        is_back.set()
        running.result()
    assert fragile.values(topic) == [b"a", b"b"]


def test_a_batch_in_foreach_batch_that_may_wait_begins_in_an_outage(
    spark: SparkSession, fragile: Cluster, tmp_path: Path
) -> None:
    topic = fragile.topic()
    patient: dict[str, str | int] = {
        "topic": topic,
        "default.api.timeout.ms": 502,
        "maxOutage": "5m",
    }
    lines = tmp_path / "lines"
    lines.mkdir()
    for number in range(3):
        (lines / f"{number}.txt").write_text(f"{number}\n", "utf-8")
    coming = Timer(6, back, [fragile])

    def save(frame: DataFrame, batch_id: int) -> None:
        if batch_id == 1:
            away(fragile)
            coming.start()
        writer = frame.write.format("semel").mode("append")
        writer.options(**options_of(fragile, patient)).save()

    source = spark.readStream.option("maxFilesPerTrigger", 1).text(str(lines))
    writer = source.writeStream.foreachBatch(save).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.awaitTermination(WAIT_S)
    coming.join()
    assert query.exception() is None
    assert sorted(fragile.values(topic), key=str) == [b"0", b"1", b"2"]


def test_a_batch_that_has_waited_says_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "REFUSED_S", 0.1)
    given = {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "7001"}
    sink = sink_options.of_batch({**given, "maxOutage": "7002ms", "topic": "t"})
    began = time.monotonic()
    with pytest.raises(UnreachableError, match=r"7002 ms, .* maxOutage: nothing listens at"):
        checked(sink)
    assert time.monotonic() - began > 7


def test_an_address_where_nothing_listens_is_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the time of a call is over: it is set to a day."""
    monkeypatch.setattr(preflight, "REFUSED_S", 0.1)
    day = str(24 * 3_600_000)
    given = {"bootstrap.servers": "127.0.0.1:1,[::1]:2", "default.api.timeout.ms": day}
    with pytest.raises(UnreachableError, match=r"nothing listens at 127\.0\.0\.1:1,\[::1\]:2 \("):
        cluster_id_of(for_batch({**given, "subscribe": "t"}))
    with pytest.raises(UnreachableError, match="nothing listens at"):
        checked(sink_options.of_stream({**given, "topic": "t"}))


def test_a_task_reads_from_no_other_cluster_than_the_one_it_was_planned_for(
    semel: Cluster,
) -> None:
    topic = semel.topic()
    semel.send(topic, [b"a"])
    planned = reader(options_of(semel, {"subscribe": topic}), COLUMNS)
    (partition,) = planned.partitions()
    task: Task = partition.value
    options = for_batch(options_of(semel, {"subscribe": topic}))
    assert task.cluster_id == cluster_id_of(options)
    other = Task(cluster_id="theirs", ranges=task.ranges)
    with pytest.raises(InconsistentClusterIdError, match="belongs to cluster theirs"):
        list(read(options, COLUMNS, other))


def test_a_process_that_has_asked_another_cluster_here_before_asks_again(semel: Cluster) -> None:
    options = for_batch(options_of(semel, {"subscribe": "t", "default.api.timeout.ms": 7_000}))
    cluster_id = cluster_id_of(options)
    connection = connect_to(options, None)
    connection.client._context.cluster.identity.cluster_id = "theirs"
    assert cluster_id_of(options) == cluster_id
    assert connect_to(options, None) is not connection
