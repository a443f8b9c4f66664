"""Batch reads of real topics with a real Spark."""

from cluster import Cluster
from pyspark.sql import DataFrame, SparkSession


def test_all_records_of_a_topic_are_read_with_kafkas_columns(
    spark: SparkSession, semel: Cluster
) -> None:
    topic = semel.topic(partitions=2)
    semel.send(topic, [b"a", None], keys=[b"k", None], partition=0)
    semel.send(topic, [b"c"], partition=1)
    frame = load(spark, semel, subscribe=topic)
    rows = frame.drop("timestamp").orderBy("partition", "offset").collect()
    assert frame.columns == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]
    assert [tuple(row) for row in rows] == [
        (b"k", b"a", topic, 0, 0, 0),
        (None, None, topic, 0, 1, 0),
        (None, b"c", topic, 1, 0, 0),
    ]


def load(spark: SparkSession, semel: Cluster, **options: str | int) -> DataFrame:
    reader = spark.read.format("semel").option("bootstrap.servers", semel.bootstrap)
    return reader.options(**options).load()
