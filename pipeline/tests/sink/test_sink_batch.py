"""Batch writes by a real Spark."""

from collections.abc import Iterator, Mapping

import pytest
from cluster import Cluster
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from aiosemel import IsolationLevel
from semel_common.record_batches.partitioner import partition_for_key

UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED


def save(frame: DataFrame, semel: Cluster, mode: str = "append", **options: object) -> None:
    texts = {name: str(value) for name, value in options.items()}
    writer = frame.write.format("semel").mode(mode).option("bootstrap.servers", semel.bootstrap)
    writer.options(**texts).save()


def numbers(spark: SparkSession, count: int, tasks: int = 2) -> DataFrame:
    return spark.range(0, count, 1, tasks).selectExpr("cast(id as string) value")


def test_all_columns_arrive(spark: SparkSession, semel: Cluster) -> None:
    first, second = semel.topic(3), semel.topic(3)
    frame = spark.range(0, 30, 1, 2).selectExpr(
        "binary(string(id)) value",
        "if(id % 3 = 0, null, concat('k', id % 5)) key",
        f"if(id < 20, '{first}', '{second}') topic",
        "if(id % 10 = 9, 2, null) partition",
        "if(id % 4 = 0, array(struct('h' as key, binary(string(id)) as value)), null) headers",
    )
    save(frame, semel)
    found = {
        int(value or b""): (*batch.topic_partition, key, headers)
        for topic in (first, second)
        for batch in semel.read(topic)
        for value, key, headers in zip(
            batch.values,
            batch.keys or [None] * len(batch.values),
            [batch.headers.get(position, ()) for position in range(len(batch.values))],
            strict=True,
        )
    }
    assert sorted(found) == list(range(30))
    for number, (topic, partition, key, headers) in found.items():
        assert topic == (first if number < 20 else second)
        assert key == (b"k%d" % (number % 5) if number % 3 else None)
        if number % 10 == 9:
            assert partition == 2
        elif key is not None:
            assert partition == partition_for_key(key, 3)
        assert headers == ((("h", b"%d" % number),) if number % 4 == 0 else ())


def test_a_version_is_written_once(spark: SparkSession, semel: Cluster) -> None:
    topic = semel.topic(2)
    for version in (1, 1, 2, 1):
        save(numbers(spark, 10), semel, topic=topic, txnAppId=topic, txnVersion=version)
    assert len(semel.values(topic, UNCOMMITTED)) == 20
    save(numbers(spark, 10), semel, topic=topic)
    save(spark.range(0).selectExpr("cast(id as string) value"), semel, topic=topic)
    assert len(semel.values(topic)) == 30


@pytest.fixture
def topic(semel: Cluster) -> Iterator[str]:
    """A topic to which nothing may be written."""
    topic = semel.topic(1)
    yield topic
    assert semel.values(topic, UNCOMMITTED) == []


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        ("'a' value", {"transactionalID": "a", "txnAppld": "a"}, "did you mean txnAppId"),
        ("'a' key", {}, "no column value"),
        ("'a' value", {"topic": "nowhere"}, "there is no topic 'nowhere'"),
        (
            "'a' value",
            {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "300"},
            "nothing listens at 127.0.0.1:1",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    spark: SparkSession,
    semel: Cluster,
    topic: str,
    columns: str,
    given: Mapping[str, str],
    message: str,
) -> None:
    frame = spark.range(1).selectExpr(*columns.split(", "))
    with pytest.raises(PySparkException, match=message):
        save(frame, semel, **{"topic": topic, **given})


def test_a_topic_is_not_overwritten(spark: SparkSession, semel: Cluster, topic: str) -> None:
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        save(numbers(spark, 1), semel, mode="overwrite", topic=topic)


def test_a_write_that_fails_leaves_nothing_to_be_seen(spark: SparkSession, semel: Cluster) -> None:
    """Its only task has no receipt to give, and no test waits for the time-out."""
    topic = semel.topic(2)
    frame = spark.range(0, 20_000, 1, 1).selectExpr(
        "if(id = 19999, repeat('x', 1000000), 'small') value"
    )
    with pytest.raises(PySparkException, match=r"is too large.*max\.request\.size"):
        save(frame, semel, topic=topic, **{"transaction.timeout.ms": "900000"})
    semel.send(topic, [b"later"], partition=0)
    semel.send(topic, [b"later"], partition=1)
    while semel.values(topic) != [b"later", b"later"]:
        """The failed write blocks readers until the brokers have heard of its abort."""
