"""One trace for a write by a real Spark: all tasks, the commit, and the markers."""

from collections import defaultdict

from cluster import Cluster
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from pyspark.sql import SparkSession

from pyspark_semel import register
from semel_runtime.testing.collector import Collector, collecting

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def test_all_tasks_of_a_write_and_its_commit_are_one_trace(
    spark: SparkSession, semel: Cluster
) -> None:
    topic = semel.topic(2)
    with collecting() as collector:
        spark.sparkContext.environment[ENDPOINT] = collector.endpoint
        register(spark)
        try:
            frame = spark.range(0, 10, 1, 2).selectExpr("cast(id as string) value")
            writer = frame.write.format("semel").mode("append")
            writer.option("bootstrap.servers", semel.bootstrap).option("topic", topic).save()
        finally:
            del spark.sparkContext.environment[ENDPOINT]
            register(spark)
    names_of_trace: dict[bytes, list[str]] = defaultdict(list)
    for span in spans(collector):
        names_of_trace[span.trace_id].append(span.name.rpartition("/")[2])
    (names,) = (each for each in names_of_trace.values() if "EndJointTxn" in each)
    assert names.count("JoinTxn") == 2
    assert f"send {topic}" in names
    assert "end joint transaction" in names


def spans(collector: Collector) -> list[Span]:
    return [
        span
        for request in collector.requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
