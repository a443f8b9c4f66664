"""The job that crashes: from one topic into another, each record once.

``python -m crashes.job`` runs it in a process of its own; tests run it in their session.
"""

import argparse
import sys
from dataclasses import dataclass
from random import Random

from cluster import Cluster
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from crashes.faults import PLAN, CrashingSource, Plan
from semel_pipelines.settings import session

TIMEOUT_MS = 20_000
"""Of the transactions."""
STOPPED = 3
"""The exit status of a job that has stopped its query: run it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Where a job reads and writes."""

    source: str
    rows: int
    """Of a micro-batch."""
    topic: str
    bootstrap: str
    checkpoint: str
    plan: Plan
    tasks: int = 4
    for_each_batch: bool = False
    timeout_ms: int = TIMEOUT_MS

    @property
    def options(self) -> dict[str, str]:
        """Those of the sink."""
        return {
            "bootstrap.servers": self.bootstrap,
            "topic": self.topic,
            "transaction.timeout.ms": str(self.timeout_ms),
            PLAN: self.plan.to_json(),
        }


def fill(semel: Cluster, source: str, *, batches: int, rows: int) -> list[bytes]:
    """Write the input, to four partitions; return it: the other topic must hold it at the end."""
    values = [b"%d" % number for number in range(batches * rows)]
    for partition in range(4):
        semel.send(source, values[partition::4], partition=partition)
    return values


def start(spark: SparkSession, job: Job) -> StreamingQuery:
    """Start the query; it ends when all is read."""
    spark.dataSource.register(CrashingSource)
    records = (
        spark.readStream.format("semel")
        .options(
            **{
                "bootstrap.servers": job.bootstrap,
                "subscribe": job.source,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(job.rows),
            }
        )
        .load()
        .select("value")
        .repartition(job.tasks)
    )
    writer = records.writeStream.option("checkpointLocation", job.checkpoint)
    writer = writer.trigger(availableNow=True)
    if job.for_each_batch:
        options = job.options

        def write(frame: DataFrame, _: int) -> None:
            frame.write.format("crashing").mode("append").options(**options).save()

        return writer.foreachBatch(write).start()
    return writer.format("crashing").options(**job.options).start()


def main() -> int:
    """Run the job to its end, or to its crash."""
    parser = argparse.ArgumentParser(prog="crashes.job", description=__doc__)
    for name in ("source", "rows", "topic", "bootstrap", "checkpoint", "plan"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--timeout-ms", type=int, default=TIMEOUT_MS)
    parser.add_argument("--master", default="local[2,4]")
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--for-each-batch", action="store_true")
    parser.add_argument("--stop-after", type=float, help="stop the query after so many seconds")
    given = parser.parse_args()
    conf = dict(each.split("=", 1) for each in given.conf)
    spark = session("crashes", given.master, {"spark.ui.showConsoleProgress": "false", **conf})
    query = start(
        spark,
        Job(
            source=given.source,
            rows=int(given.rows),
            topic=given.topic,
            bootstrap=given.bootstrap,
            checkpoint=given.checkpoint,
            plan=Plan.from_json(given.plan),
            for_each_batch=given.for_each_batch,
            timeout_ms=given.timeout_ms,
        ),
    )
    if given.stop_after is not None:
        chance = Random(f"{query.runId}")
        if not query.awaitTermination(given.stop_after + chance.uniform(0, 2)):
            query.stop()
            return STOPPED
    else:
        query.awaitTermination()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
