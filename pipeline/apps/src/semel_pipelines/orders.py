"""Order lines: what a record of the topic of orders must say to be one, and what else is wrong.

Transforms only: a frame in, a frame out. Every record goes exactly one way, to ``well_formed`` or
to ``rejected``, and which way is the same whenever it is read again.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

_LINE = (
    "line BIGINT, id STRING, date STRING, time STRING,"
    " name STRING, size STRING, type STRING, price STRING"
)
_PRICE = r"^\d{1,8}(\.\d{1,2})?$"
"""An amount of money: more decimals would have to be rounded, and no rule for that is agreed."""
_AHEAD = "INTERVAL 1 DAY"
"""How far clocks may differ. One order from next year would make all others late."""


def parsed(records: DataFrame) -> DataFrame:
    """Return the columns of an order line beside those of its record, and ``fault``: why not."""
    line = F.from_json(F.col("value").cast("string"), _LINE)
    ordered_at = F.concat_ws(" ", F.col("order.date"), F.col("order.time"))
    return (
        records.withColumn("order", line)
        .withColumn("ordered_at", F.try_to_timestamp(ordered_at, F.lit("yyyy-MM-dd HH:mm:ss")))
        .withColumn("price", F.col("order.price").try_cast("DECIMAL(10, 2)"))
        .select(
            *(F.col(f"order.{name}") for name in ("line", "id", "name", "size", "type")),
            "ordered_at",
            "price",
            _fault().alias("fault"),
            *(F.col(name).alias(f"record_{name}") for name in _KEPT),
        )
    )


def well_formed(lines: DataFrame) -> DataFrame:
    """Return the order lines, without their records."""
    return lines.where("fault IS NULL").select(
        "line", "id", "ordered_at", "name", "size", "type", "price"
    )


def rejected(lines: DataFrame, topic: str) -> DataFrame:
    """Return the records that are no order lines, for a topic of such."""
    return lines.where("fault IS NOT NULL").select(rejection(topic).alias("r")).select("r.*")


def rejection(topic: str) -> Column:
    """Return a record as it was, for a topic of such; its headers say why, and whence."""
    return F.struct(
        F.lit(topic).alias("topic"),
        F.col("record_key").alias("key"),
        F.col("record_value").alias("value"),
        F.array(
            _header("fault", F.col("fault")),
            _header("topic", F.col("record_topic")),
            _header("partition", F.col("record_partition").cast("string")),
            _header("offset", F.col("record_offset").cast("string")),
        ).alias("headers"),
    )


_KEPT = ("key", "value", "topic", "partition", "offset")


def _fault() -> Column:
    """Return the first thing that is wrong; null where all is well."""
    order = F.col("order")
    no_line = F.col("value").isNull() | order.isNull()
    ahead = F.col("ordered_at") > F.col("timestamp") + F.expr(_AHEAD)
    priced = F.col("order.price").rlike(_PRICE) & F.col("price").isNotNull()
    return (
        F.when(no_line | _is_empty(order), "no JSON object of an order line")
        .when(F.col("order.line").isNull(), "no number of a line")
        .when(F.col("order.id").isNull(), "no id of an order")
        .when(F.col("order.name").isNull(), "no name of a pizza")
        .when(F.col("order.type").isNull(), "no type of a pizza")
        .when(F.col("ordered_at").isNull(), "no date and time")
        .when(ahead, "ordered after it was stored")
        .when(~F.coalesce(priced, F.lit(False)), "no price in dollars and cents")
    )


def _is_empty(order: Column) -> Column:
    """Whether nothing of an order line was found: lines that are no JSON parse to this."""
    return F.coalesce(order["line"].cast("string"), order["id"], order["date"]).isNull()


def record(topic: str, key: Column, value: Column) -> Column:
    """Return a record without headers, as the column of a struct."""
    return F.struct(
        F.lit(topic).alias("topic"),
        key.cast("binary").alias("key"),
        value.cast("binary").alias("value"),
        F.lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
    )


def _header(name: str, text: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), text.cast("binary").alias("value"))
