"""Both pipelines between real topics: each input is written once, also after a restart."""

import json
from pathlib import Path

from cluster import Cluster
from order_frames import order
from pyspark.sql import SparkSession

from semel_pipelines import enrich, pizza_income
from semel_pipelines.command import Place
from semel_pipelines.enrich.transforms import Topics, menu_of
from semel_pipelines.menu import read_menu
from semel_pipelines.pizza_income.open_windows import open_windows

BAD = b"no order"
FIRST = (order(line=1), order(line=2, price="0.10"), BAD)
SECOND = (order(line=3, date="2015-03-02"), order(line=4, date="2015-03-12", type="veggie"))


def place(semel: Cluster, checkpoint: Path) -> Place:
    return Place(
        bootstrap=semel.bootstrap,
        checkpoint=str(checkpoint),
        available_now=True,
        max_offsets_per_trigger=2,
        group=None,
    )


def test_income_comes_out_once_for_each_day_that_is_closed(
    spark: SparkSession, semel: Cluster, tmp_path: Path
) -> None:
    orders, income, rejected = semel.topic(2), semel.topic(2), semel.topic()
    where = place(semel, tmp_path)
    for values in (FIRST, SECOND):  # Each a run of its own, from the same checkpoint.
        semel.send(orders, values)
        records = pizza_income.transforms.pipeline(
            where.stream(spark, orders), lateness="2 days", income=income, rejected=rejected
        )
        where.write(records, "income").awaitTermination()
    closed = [json.loads(value or b"") for value in semel.values(income)]
    assert sorted((each["day"], each["type"], each["income"]) for each in closed) == [
        ("2015-03-01", "classic", "13.35"),
        ("2015-03-02", "classic", "13.25"),
    ]
    (still_open,) = open_windows(spark, where.checkpoint).collect()
    assert (str(still_open.day), still_open.type, still_open.pizzas) == ("2015-03-12", "veggie", 1)
    assert semel.values(rejected) == [BAD]


def test_each_order_line_becomes_one_sale_and_one_ticket(
    spark: SparkSession, semel: Cluster, tmp_path: Path
) -> None:
    orders, menu = semel.topic(2), semel.topic()
    topics = Topics(sales=semel.topic(2), kitchen=semel.topic(2), rejected=semel.topic())
    dishes = read_menu()
    semel.send(menu, [dish.value for dish in dishes], keys=[dish.key for dish in dishes])
    where = place(semel, tmp_path)
    unknown = order(name="calzone")
    for values in (FIRST, (*SECOND, unknown)):
        semel.send(orders, values)
        records = enrich.transforms.pipeline(
            where.stream(spark, orders), menu_of(where.table(spark, menu)), topics
        )
        where.write(records, "enrich").awaitTermination()
    for topic in (topics.sales, topics.kitchen):
        numbers = [json.loads(value or b"")["line"] for value in semel.values(topic)]
        assert sorted(numbers) == [1, 2, 3, 4]
    assert sorted(value or b"" for value in semel.values(topics.rejected)) == sorted([BAD, unknown])
