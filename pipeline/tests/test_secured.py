"""A cluster that asks for certificates, as a source and as a sink of a real Spark."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import cluster as clusters
import pytest
from cluster import Cluster
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from semel_pipelines import command

ROWS = 50
LARGE = {"max.request.size": "100000", "compression.type": "zstd"}


@pytest.fixture(scope="module")
def secured(
    spark: SparkSession,  # noqa: ARG001 - it comes first
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """A cluster that serves no client without a certificate."""
    with clusters.cluster(tmp_path_factory.mktemp("secured"), brokers=1, tls=True) as started:
        yield started


@pytest.fixture(scope="module")
def options(secured: Cluster) -> Mapping[str, str]:
    """What connects with it, under Kafka's names."""
    files = secured.processes.certificates
    assert files is not None
    return {
        "kafka.bootstrap.servers": secured.bootstrap,
        "kafka.security.protocol": "SSL",
        "kafka.ssl.ca.location": str(files.ca),
        "kafka.ssl.certificate.location": str(files.client_certificate),
        "kafka.ssl.key.location": str(files.client_key),
    }


def test_driver_and_tasks_write_and_read_with_certificates(
    spark: SparkSession, secured: Cluster, options: Mapping[str, str]
) -> None:
    topic = secured.topic(2)
    frame = spark.range(0, ROWS, 1, 2).selectExpr("rpad(string(id), 10000, '.') value")
    writer = frame.write.format("semel").mode("append")
    writer.options(**options, **LARGE, topic=topic).save()
    found = spark.read.format("semel").options(**options, subscribe=topic).load()
    texts = Counter(
        row.text for row in found.selectExpr("rtrim('.', string(value)) text").collect()
    )
    assert texts == Counter(str(number) for number in range(ROWS))


def test_a_pipeline_connects_as_its_command_line_says(
    spark: SparkSession, secured: Cluster, options: Mapping[str, str], tmp_path: Path
) -> None:
    source, topic = secured.topic(), secured.topic()
    secured.send(source, [b"order"])
    words = (f"--bootstrap={secured.bootstrap}", f"--checkpoint={tmp_path}", "--available-now")
    told = [f"--semel={name}={value}" for name, value in options.items()]
    place = command.place(command.parser("pipeline", "").parse_args([*words, *told]))
    records = place.stream(spark, source).selectExpr("value", f"'{topic}' topic")
    place.write(records, "copy").awaitTermination()
    assert place.table(spark, topic).count() == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kafka.ssl.ca.location": "/nowhere/ca.pem"}, "/nowhere/ca.pem"),
        ({"kafka.ssl.server.name": "other.example"}, "other.example"),
        ({"security.protocol": "PLAINTEXT"}, "security.protocol and kafka.security.protocol"),
    ],
)
def test_who_cannot_connect_is_told_before_anything_is_written(
    spark: SparkSession,
    secured: Cluster,
    options: Mapping[str, str],
    given: Mapping[str, str],
    said: str,
) -> None:
    topic = secured.topic()
    wrong = {**options, **given, "topic": topic, "default.api.timeout.ms": "500"}
    with pytest.raises(PySparkException, match=said):
        spark.range(1).selectExpr("'a' value").write.format("semel").mode("append").options(
            **wrong
        ).save()
    assert secured.values(topic) == []
