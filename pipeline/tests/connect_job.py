"""A stream of Spark Connect with ``foreachBatch``: ``python connect_job.py`` runs it in full.

Its micro-batches are written under names of their own; then the last one is done again, as after a
crash; then one is written without a name. It writes what the last one was told.
"""

import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from semel_pipelines.settings import session

ROWS = 20
"""Of a micro-batch."""


def follow(
    spark: SparkSession,
    cluster: dict[str, str],
    topics: tuple[str, str],
    checkpoint: Path,
    *,
    named: bool = True,
) -> None:
    """Copy what a topic has now into another."""
    source, topic = topics

    def write(frame: DataFrame, batch_id: int) -> None:
        says = {"txnAppId": topic, "txnVersion": str(batch_id)} if named else {}
        writer = frame.write.format("semel").mode("append").options(**cluster, **says)
        writer.option("topic", topic).save()

    reader = spark.readStream.format("semel").options(**cluster).option("subscribe", source)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", ROWS)
    writer = reader.load().select("value").writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start().awaitTermination()


def main(bootstrap: str, source: str, topic: str, folder: Path) -> None:
    """Run all three."""
    cluster = {"bootstrap.servers": bootstrap}
    spark = session("connect", remote="local[2]")
    follow(spark, cluster, (source, topic), folder / "named")
    last = max((folder / "named" / "commits").glob("[0-9]*"), key=lambda each: int(each.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    follow(spark, cluster, (source, topic), folder / "named")
    sys.stdout.write(f"done again: {last.exists()}\n")
    try:
        follow(spark, cluster, (source, topic), folder / "nameless", named=False)
    except PySparkException as error:
        sys.stdout.write(f"{error}\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
