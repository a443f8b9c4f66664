"""A stream of Spark from topic to topic, exactly once.

    pip install pyspark-semel
    semel up                                             # in another terminal
    semel topics create orders --partitions 4
    semel topics create income --partitions 4
    python examples/spark_stream.py /tmp/income          # kill it at any point, and start it again
    echo '{"customer": "alice", "cents": 800}' | semel produce orders

Each micro-batch is one joint transaction: its rows become visible together, and once, through every
kill of the driver or of a task. The checkpoint has the position in the topic; it belongs to this
query, so give it a folder that stays.
"""

import argparse
import signal

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json
from pyspark.sql.streaming.query import StreamingQuery

import pyspark_semel


def income(spark: SparkSession, bootstrap: str, checkpoint: str) -> StreamingQuery:
    """Start the query: the income of each order, by customer."""
    orders = (
        spark.readStream.format("semel")
        .option("bootstrap.servers", bootstrap)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    order = from_json(col("value").cast("string"), "customer string, cents long")
    lines = orders.select(order.alias("order")).where("order.cents is not null")
    return (
        lines.selectExpr(
            "cast(order.customer as binary) as key",
            "cast(cast(order.cents as string) as binary) as value",
        )
        .writeStream.format("semel")
        .option("bootstrap.servers", bootstrap)
        .option("topic", "income")
        .option("checkpointLocation", checkpoint)
        .start()
    )


def main() -> None:
    """Read the command line, and run until a signal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkpoint", help="folder of this query, which stays over restarts")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a coordinator")
    options = parser.parse_args()
    spark = SparkSession.builder.appName("income").getOrCreate()
    pyspark_semel.register(spark)
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: signals.append(received))
    query = income(spark, options.bootstrap, options.checkpoint)
    while not signals and not query.awaitTermination(1):
        pass  # A failure of the query is raised here.
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
