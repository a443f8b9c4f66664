"""What is open: the income of the days that the watermark has not closed yet, from the state itself.

Together with the closed days, which are in the topic of income, it is all the income there is: an order
line is in Spark's state from the transaction that has read it until the one that closes its day.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it


def open_windows(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Return the open days of a query by its checkpoint, as of its last batch that is complete."""
    state = spark.read.format("statestore").load(checkpoint)
    return state.select(
        F.to_date("key.window.start").alias("day"),
        F.col("key.type").alias("type"),
        F.col("value.sum").alias("income"),
        F.col("value.count").alias("pizzas"),
    )
