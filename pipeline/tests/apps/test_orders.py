"""What is an order line, and what becomes of everything else."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from order_frames import order, records
from pyspark.sql import SparkSession

from semel_pipelines import orders

FAULTS = {
    b"": "no JSON object of an order line",
    b"not JSON": "no JSON object of an order line",
    b'{"line": 1': "no JSON object of an order line",
    b"[]": "no JSON object of an order line",
    b"{}": "no JSON object of an order line",
    b"\xff\xfe": "no JSON object of an order line",
    None: "no JSON object of an order line",
    order(line=None): "no number of a line",
    order(line="first"): "no number of a line",
    order(id=None): "no id of an order",
    order(name=None): "no name of a pizza",
    order(type=None): "no type of a pizza",
    order(date="2015-02-30"): "no date and time",
    order(time="25:00:00"): "no date and time",
    order(date=None): "no date and time",
    order(date="2026-01-03"): "ordered after it was stored",
    order(price=None): "no price in dollars and cents",
    order(price="free"): "no price in dollars and cents",
    order(price="13.255"): "no price in dollars and cents",
    order(price="-1"): "no price in dollars and cents",
    order(price="999999999"): "no price in dollars and cents",
    order(price="1e2"): "no price in dollars and cents",
}


def test_an_order_line_keeps_its_cents_and_its_time(spark: SparkSession) -> None:
    lines = orders.parsed(records(spark, order(price="16"), order(line=2, price="0.10")))
    found = [(row.line, row.price, row.ordered_at) for row in orders.well_formed(lines).collect()]
    at = datetime(2015, 3, 1, 11, 38, 36, tzinfo=UTC).astimezone().replace(tzinfo=None)
    assert found == [(1, Decimal("16.00"), at), (2, Decimal("0.10"), at)]


def test_a_record_that_is_no_order_line_is_rejected_with_its_first_fault(
    spark: SparkSession,
) -> None:
    lines = orders.parsed(records(spark, *FAULTS)).orderBy("record_offset")
    found = {
        None if row.record_value is None else bytes(row.record_value): row.fault
        for row in lines.collect()
    }
    assert found == FAULTS
    assert orders.well_formed(lines).count() == 0


def test_a_rejected_record_is_as_it_was_and_says_whence_it_came(spark: SparkSession) -> None:
    lines = orders.parsed(records(spark, order(), b"not JSON"))
    (row,) = orders.rejected(lines, "pizza-rejected").collect()
    assert (row.topic, bytes(row.key), bytes(row.value)) == ("pizza-rejected", b"key", b"not JSON")
    assert {header.key: bytes(header.value) for header in row.headers} == {
        "fault": b"no JSON object of an order line",
        "topic": b"orders",
        "partition": b"0",
        "offset": b"1",
    }


@pytest.mark.parametrize("value", [order(), b"not JSON", None])
def test_every_record_goes_exactly_one_way(spark: SparkSession, value: bytes | None) -> None:
    lines = orders.parsed(records(spark, value))
    assert orders.well_formed(lines).count() + orders.rejected(lines, "rejected").count() == 1
