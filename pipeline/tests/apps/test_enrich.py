"""Order lines with the menu's facts about their pizza."""

import json

from order_frames import order, records, table
from pyspark.sql import DataFrame, SparkSession

from semel_cli.demo.input import read_orders
from semel_pipelines import orders
from semel_pipelines.enrich.transforms import Topics, as_records, menu_of, with_menu
from semel_pipelines.menu import Dish, read_menu

TOPICS = Topics(sales="sales", kitchen="kitchen", rejected="rejected")
HAWAIIAN = Dish(name="hawaiian", title="Hawaiian", ingredients=["Sliced Ham", "Pineapple"])


def menu_records(spark: SparkSession, *entries: tuple[bytes, bytes | None]) -> DataFrame:
    keys, values = [key for key, _ in entries], [value for _, value in entries]
    return spark.createDataFrame(table(*values, keys=keys))


def made(spark: SparkSession, *values: bytes) -> list[tuple[str, bytes, dict[str, object]]]:
    menu = menu_of(menu_records(spark, (HAWAIIAN.key, HAWAIIAN.value)))
    lines = with_menu(orders.parsed(records(spark, *values)), menu)
    return sorted(
        (row.topic, bytes(row.key), json.loads(bytes(row.value)))
        for row in as_records(lines, TOPICS).collect()
    )


def test_the_menu_has_every_pizza_that_was_ever_ordered() -> None:
    assert {dish.name for dish in read_menu()} == {line.name for line in read_orders().lines}


def test_a_dish_of_the_menu_has_its_ingredients() -> None:
    (dish,) = (dish for dish in read_menu() if dish.name == "pep_msh_pep")
    assert dish.title == "Pepperoni, Mushroom, and Peppers"
    assert dish.ingredients == ["Pepperoni", "Mushrooms", "Green Peppers"]


def test_an_order_line_becomes_a_sale_and_a_ticket_for_the_kitchen(spark: SparkSession) -> None:
    assert made(spark, order()) == [
        (
            "kitchen",
            b"2015-000001",
            {
                "line": 1,
                "id": "2015-000001",
                "title": "Hawaiian",
                "size": "M",
                "ingredients": ["Sliced Ham", "Pineapple"],
            },
        ),
        (
            "sales",
            b"2015-000001",
            {
                "line": 1,
                "id": "2015-000001",
                "ordered_at": "2015-03-01 11:38:36",
                "name": "hawaiian",
                "title": "Hawaiian",
                "size": "M",
                "type": "classic",
                "price": "13.25",
            },
        ),
    ]


def test_a_pizza_that_is_not_on_the_menu_is_rejected(spark: SparkSession) -> None:
    menu = menu_of(menu_records(spark, (HAWAIIAN.key, HAWAIIAN.value)))
    unknown = order(name="calzone")
    lines = with_menu(orders.parsed(records(spark, unknown, b"not JSON")), menu)
    found = as_records(lines, TOPICS).collect()
    assert {(row.topic, bytes(row.value), bytes(row.headers[0].value)) for row in found} == {
        ("rejected", unknown, b"no such pizza on the menu"),
        ("rejected", b"not JSON", b"no JSON object of an order line"),
    }


def test_the_last_record_of_a_dish_counts_and_a_tombstone_removes_it(spark: SparkSession) -> None:
    gone = Dish(name="calzone", title="Calzone", ingredients=[])
    renamed = Dish(name="hawaiian", title="Aloha", ingredients=[])
    entries = [(dish.key, dish.value) for dish in (HAWAIIAN, gone, renamed)]
    menu = menu_of(menu_records(spark, *entries, (gone.key, None))).collect()
    assert [(row.name, row.title) for row in menu] == [("hawaiian", "Aloha")]
