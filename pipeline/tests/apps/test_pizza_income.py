"""Income by day and type: exact, closed by the watermark, and still known while open."""

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from order_frames import RECORD, order, records, table
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from semel_pipelines import orders
from semel_pipelines.pizza_income.open_windows import open_windows
from semel_pipelines.pizza_income.transforms import COLUMNS, as_records, income_by_day

LATENESS = "2 days"
Income = tuple[str, str, str, int]


class Stream:
    """A stream of order lines that come one batch after the other, and the days that it closes."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._batches = 0
        self.checkpoint = folder / "checkpoint"
        (folder / "in").mkdir()
        source = spark.readStream.schema(RECORD).parquet(str(folder / "in"))
        lines = orders.well_formed(orders.parsed(source))
        writer = income_by_day(lines, LATENESS).writeStream.format("memory").queryName("closed")
        self.query: StreamingQuery = writer.option(
            "checkpointLocation", str(self.checkpoint)
        ).start()

    def take(self, *values: bytes) -> None:
        """Let some order lines come in as one batch, and wait until it is done."""
        self._batches += 1
        written = self._folder / "batch.parquet"
        parquet.write_table(table(*values), written)
        written.rename(self._folder / "in" / f"{self._batches}.parquet")
        self.query.processAllAvailable()

    @property
    def closed(self) -> list[Income]:
        """The days that are closed, with their income."""
        return _income(self._spark.table("closed"))

    @property
    def open(self) -> list[Income]:
        """The days that are open."""
        return _income(open_windows(self._spark, str(self.checkpoint)))


def _income(days: DataFrame) -> list[Income]:
    found = days.select(*COLUMNS).orderBy("day", "type").collect()
    return [(str(row.day), row.type, str(row.income), row.pizzas) for row in found]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    started = Stream(spark, tmp_path)
    yield started
    started.query.stop()


def test_income_is_summed_by_day_and_type_without_losing_a_cent(spark: SparkSession) -> None:
    many = [order(line=number, price="0.10") for number in range(1_000)]
    other = order(type="veggie", price="20.75"), order(date="2015-03-02", price="16")
    lines = orders.well_formed(orders.parsed(records(spark, *many, *other)))
    found = income_by_day(lines, LATENESS).orderBy("day", "type").collect()
    assert [tuple(row) for row in found] == [
        (date(2015, 3, 1), "classic", Decimal("100.00"), 1_000),
        (date(2015, 3, 1), "veggie", Decimal("20.75"), 1),
        (date(2015, 3, 2), "classic", Decimal("16.00"), 1),
    ]


def test_a_record_of_income_has_its_amount_as_text(spark: SparkSession) -> None:
    lines = orders.well_formed(orders.parsed(records(spark, order(), order(price="0.10"))))
    (row,) = as_records(income_by_day(lines, LATENESS), "pizza-income").collect()
    assert (row.topic, bytes(row.key), row.headers) == ("pizza-income", b"2015-03-01 classic", None)
    assert json.loads(bytes(row.value)) == {
        "day": "2015-03-01",
        "type": "classic",
        "income": "13.35",
        "pizzas": 2,
    }


def test_closed_and_open_days_are_all_income_there_is(stream: Stream) -> None:
    stream.take(order(), order(type="veggie", price="20.75"), order(date="2015-03-02", price="1"))
    assert stream.closed == []
    stream.take(order(date="2015-03-04", time="00:00:00", price="5"))
    assert stream.closed == [
        ("2015-03-01", "classic", "13.25", 1),
        ("2015-03-01", "veggie", "20.75", 1),
    ]
    assert stream.open == [
        ("2015-03-02", "classic", "1.00", 1),
        ("2015-03-04", "classic", "5.00", 1),
    ]


def test_a_late_order_counts_until_its_day_is_closed_and_never_after(stream: Stream) -> None:
    stream.take(order(date="2015-03-03"))
    stream.take(order(price="1"))  # Two days late, which is in time.
    stream.take(order(date="2015-03-05"))
    assert stream.closed == [("2015-03-01", "classic", "1.00", 1)]
    stream.take(order(price="1"), order(date="2015-03-05", price="2"))  # The first is too late.
    assert stream.closed == [("2015-03-01", "classic", "1.00", 1)]
    assert ("2015-03-05", "classic", "15.25", 2) in stream.open
    dropped = [
        operator["numRowsDroppedByWatermark"]
        for progress in stream.query.recentProgress
        for operator in progress["stateOperators"]
    ]
    assert sum(dropped) == 1
