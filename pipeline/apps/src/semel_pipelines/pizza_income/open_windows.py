"""Open windows: the income of days that the watermark has not closed yet, from the state itself.

`python -m semel_pipelines.pizza_income.open_windows --checkpoint …` prints it, as lines of JSON.
Together with the closed days, which are in the topic of income, it is all the income there is: an
order line is in Spark's state from the transaction that has read it until the one that closes its
day.
"""

import argparse
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from semel_pipelines import command
from semel_pipelines.pizza_income.transforms import as_json


def open_windows(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Return the open days of a query by its checkpoint, as of its last batch that is complete."""
    state = spark.read.format("statestore").load(checkpoint)
    return state.select(
        F.to_date("key.window.start").alias("day"),
        F.col("key.type").alias("type"),
        F.col("value.sum").alias("income"),
        F.col("value.count").alias("pizzas"),
    )


def main() -> None:
    """Print the open windows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True, help="of the pipeline pizza_income")
    command.add_session_arguments(parser)
    arguments = parser.parse_args()
    with command.spark_session(arguments, "open-windows") as spark:
        days = open_windows(spark, arguments.checkpoint).orderBy("day", "type")
        for row in days.select(as_json().alias("line")).toLocalIterator():
            sys.stdout.write(f"{row.line}\n")


if __name__ == "__main__":
    main()
