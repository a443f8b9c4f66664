"""From order lines to income by day and type of pizza: a frame in, a frame out.

Amounts are decimals from the first record to the last, and text in records: a reader that reads a
number from JSON as a float has lost the cents.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from semel_pipelines import orders

COLUMNS = ("day", "type", "income", "pizzas")
"""Of income, whether its day is closed or still open."""
LATENESS = "7 days"
"""How late an order may come. Partitions of a backlog are not read day by day, but side by side."""


def pipeline(records: DataFrame, *, lateness: str, income: str, rejected: str) -> DataFrame:
    """Return the records that records of orders make: income of closed days, and rejected ones."""
    lines = orders.parsed(records)
    closed = income_by_day(orders.well_formed(lines), lateness)
    return as_records(closed, income).unionByName(orders.rejected(lines, rejected))


def income_by_day(lines: DataFrame, lateness: str) -> DataFrame:
    """Return the income of each day and type.

    A stream has a day when it is closed, that is when an order came that is more than ``lateness``
    later than the day's end. What comes for a closed day is left out, and counted by Spark.
    """
    return (
        lines.withWatermark("ordered_at", lateness)
        .groupBy(F.window("ordered_at", "1 day").alias("window"), "type")
        .agg(F.sum("price").alias("income"), F.count(F.lit(1)).alias("pizzas"))
        .select(F.to_date("window.start").alias("day"), "type", "income", "pizzas")
    )


def as_records(income: DataFrame, topic: str) -> DataFrame:
    """Return income as records of a topic, keyed by day and type."""
    record = orders.record(topic, F.concat_ws(" ", "day", "type"), as_json())
    return income.select(record.alias("record")).select("record.*")


def as_json() -> Column:
    """Return the columns of income as JSON."""
    texts = (F.col(name).cast("string").alias(name) for name in ("day", "type", "income"))
    return F.to_json(F.struct(*texts, "pizzas"))
