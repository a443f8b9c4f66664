"""A driver of Spark that does what it is told: workloads as lines of JSON in, numbers out.

One process for each system, started once: a Java that is warm measures the system, not itself. Both
have the same settings, and the same frames; only the name of the format and its options differ.
"""

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from statistics import median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.streaming.query import StreamingQuery

from bench.spark import nothing
from bench.spark.figures import PARTITIONS, System, Workload
from semel_pipelines.settings import session

_SHA_BYTES = 64
_BATCHES = 4
"""Micro-batches of a stream; the first, which warms up, is not counted."""
_WARM_UP = 5


class Bench:
    """The workloads on one system."""

    def __init__(self, spark: SparkSession, system: System, bootstrap: str) -> None:
        self._spark = spark
        self._format = str(system)
        self._bootstrap = bootstrap
        self._options: Mapping[str, str] = {}
        self._frames: dict[tuple[int, int], DataFrame] = {}

    def run(self, workload: Workload, topic: str, size: int, records: int) -> float:
        """Return rows/s, or of small batches ms. Raises ValueError for a wrong sum."""
        self._options = self._options_for(size, records)
        match workload:
            case Workload.WRITE:
                return self._write(topic, size, records)
            case Workload.READ:
                return self._read(topic, size, records)
            case Workload.STREAM:
                return self._stream(topic, records)
            case Workload.SMALL_BATCH:
                return self._small_batches(topic, size, records)

    def _options_for(self, size: int, records: int) -> Mapping[str, str]:
        if self._format == System.NOTHING:
            return {nothing.ROWS: str(records), nothing.SIZE: str(size)}
        return {"kafka.bootstrap.servers": self._bootstrap}

    def _write(self, topic: str, size: int, records: int) -> float:
        frame = self._frame(size, records)
        began = time.perf_counter()
        writer = frame.write.format(self._format).options(**self._options)
        writer.option("topic", topic).mode("append").save()
        return records / (time.perf_counter() - began)

    def _read(self, topic: str, size: int, records: int) -> float:
        self._check(topic, size, records)
        began = time.perf_counter()
        self._topic(topic).write.format("noop").mode("overwrite").save()
        return records / (time.perf_counter() - began)

    def _stream(self, topic: str, records: int) -> float:
        """Copy a topic to another; the rate is that of Spark's own record of its micro-batches."""
        per_batch = -(-records // _BATCHES)
        done = self._copy(topic, f"{topic}-copy", per_batch).recentProgress
        counted = [each for each in done if each["numInputRows"]][1:]
        rows: int = sum(each["numInputRows"] for each in counted)
        took_ms: int = sum(each["durationMs"]["triggerExecution"] for each in counted)
        if self._topic(f"{topic}-copy").count() != records:
            raise ValueError(
                f"{self._format}: {topic}-copy has not the {records} records of {topic}"
            )
        return rows / took_ms * 1_000

    def _small_batches(self, topic: str, size: int, records: int) -> float:
        self._write(topic, size, records)
        done = self._copy(topic, f"{topic}-copy", PARTITIONS).recentProgress
        took = [each["durationMs"]["triggerExecution"] for each in done if each["numInputRows"]]
        return float(median(took[_WARM_UP:]))

    def _copy(self, topic: str, to: str, per_batch: int) -> StreamingQuery:
        """Copy the present records, in micro-batches of so many records."""
        reader = self._spark.readStream.format(self._format).options(**self._options)
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        records = reader.option("maxOffsetsPerTrigger", per_batch).load().select("key", "value")
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = records.writeStream.format(self._format).options(**self._options)
            writer = writer.option("topic", to).option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
        return query

    def _topic(self, topic: str) -> DataFrame:
        reader = self._spark.read.format(self._format).options(**self._options)
        return reader.option("subscribe", topic).option("startingOffsets", "earliest").load()

    def _check(self, topic: str, size: int, records: int) -> None:
        """See that every byte is there: a reader that leaves something out would be fast."""
        sums = F.count(F.lit(1)).alias("rows"), F.sum(F.length("value")).alias("size")
        (found,) = self._topic(topic).agg(*sums).collect()
        if (found["rows"], found["size"]) != (records, records * size):
            raise ValueError(f"{self._format}: {topic} reads as {found}, not {records} of {size} B")

    def _frame(self, size: int, records: int) -> DataFrame:
        """Return records that do not compress, kept in memory: to make them is not measured."""
        if (size, records) not in self._frames:
            for frame in self._frames.values():
                frame.unpersist()
            self._frames.clear()
            parts = (
                F.unhex(F.sha2(F.concat_ws("-", "id", F.lit(number)), 512))
                for number in range(-(-size // _SHA_BYTES))
            )
            frame = self._spark.range(0, records, 1, PARTITIONS).select(
                F.col("id").cast("string").cast("binary").alias("key"),
                F.substring(F.concat(*parts), 1, size).alias("value"),
            )
            frame.persist().count()
            self._frames[size, records] = frame
        return self._frames[size, records]


def main(system: System, bootstrap: str, jars: str) -> None:
    """Answer each line of standard input with one of standard output."""
    conf = {"spark.driver.memory": "4g", "spark.jars": jars}
    spark = session(f"bench-{system}", "local[2]", conf if jars else {"spark.driver.memory": "4g"})
    spark.sparkContext.setLogLevel("ERROR")
    nothing.register(spark)
    bench = Bench(spark, system, bootstrap)
    for line in sys.stdin:
        told = json.loads(line)
        workload = Workload(told["workload"])
        value = bench.run(workload, told["topic"], told["size"], told["records"])
        print(json.dumps(value), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(System(sys.argv[1]), sys.argv[2], sys.argv[3])
