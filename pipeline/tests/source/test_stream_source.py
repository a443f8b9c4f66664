"""Streams of real topics with a real Spark."""

from pathlib import Path

from cluster import Cluster
from pyspark.sql import SparkSession


def test_a_stream_reads_what_comes(spark: SparkSession, semel: Cluster, tmp_path: Path) -> None:
    topic = semel.topic(partitions=2)
    semel.send(topic, [b"a", b"b"], partition=0)
    frame = (
        spark.readStream.format("semel")
        .options(
            **{
                "bootstrap.servers": semel.bootstrap,
                "subscribe": topic,
                "startingOffsets": "earliest",
            }
        )
        .load()
    )
    query = (
        frame.writeStream.format("memory")
        .queryName("first")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    query.processAllAvailable()
    semel.send(topic, [b"c"], partition=1)
    query.processAllAvailable()
    print(query.lastProgress)
    query.stop()
    assert sorted(bytes(row.value) for row in spark.table("first").collect()) == [b"a", b"b", b"c"]
