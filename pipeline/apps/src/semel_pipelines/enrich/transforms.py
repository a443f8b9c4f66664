"""From order lines and a menu to records of several topics: a frame in, a frame out.

Each order line becomes one row with the array of records that it makes, and then those records: it
is read once, and its records are written in one transaction.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from semel_pipelines import orders

_DISH = "name STRING, title STRING, ingredients ARRAY<STRING>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Where what becomes of an order line goes."""

    sales: str
    """What was sold at what price, for the books."""
    kitchen: str
    """What to put on it, for the kitchen."""
    rejected: str
    """Records that are no order line, or are for a pizza that is not on the menu."""


def pipeline(records: DataFrame, menu: DataFrame, topics: Topics) -> DataFrame:
    """Return the records that records of orders make."""
    return as_records(with_menu(orders.parsed(records), menu), topics)


def menu_of(records: DataFrame) -> DataFrame:
    """Return the dishes of a topic of the menu: of each key, the last record of its partition."""
    last = F.max_by("value", "offset")
    return (
        records.groupBy("key")
        .agg(last.alias("value"))
        .select(F.from_json(F.col("value").cast("string"), _DISH).alias("dish"))
        .select("dish.name", "dish.title", "dish.ingredients")
        .where("name IS NOT NULL")
    )


def with_menu(lines: DataFrame, menu: DataFrame) -> DataFrame:
    """Return parsed order lines with the title and the ingredients of their pizza."""
    unknown = F.when(F.col("title").isNull(), "no such pizza on the menu")
    return lines.join(F.broadcast(menu), "name", "left").withColumn(
        "fault", F.coalesce("fault", unknown)
    )


def as_records(lines: DataFrame, topics: Topics) -> DataFrame:
    """Return the records that order lines with their dishes make."""
    made = F.when(
        F.col("fault").isNull(), F.array(_sale(topics.sales), _ticket(topics.kitchen))
    ).otherwise(F.array(orders.rejection(topics.rejected)))
    return lines.select(F.explode(made).alias("record")).select("record.*")


def _sale(topic: str) -> Column:
    sale = F.struct(
        "line",
        "id",
        F.date_format("ordered_at", "yyyy-MM-dd HH:mm:ss").alias("ordered_at"),
        "name",
        "title",
        "size",
        "type",
        F.col("price").cast("string").alias("price"),
    )
    return orders.record(topic, F.col("id"), F.to_json(sale))


def _ticket(topic: str) -> Column:
    ticket = F.struct("line", "id", "title", "size", "ingredients")
    return orders.record(topic, F.col("id"), F.to_json(ticket))
