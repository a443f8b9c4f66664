"""The parts of the proof, each for itself: the feed, the plan of kills, the books, the picture."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from semel_cli.demo.input import OrderLine, Orders, read_orders
from semel_pipelines.proof.books import (
    Found,
    Group,
    Income,
    differences,
    entry,
    expected_income,
    total,
)
from semel_pipelines.proof.feed import deliveries
from semel_pipelines.proof.kills import FIRST, LAST, plan
from semel_pipelines.proof.picture import draw

BAD = (b"no order",)
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def orders() -> Orders:
    """The orders of a year: only the process that runs these tests reads them."""
    return read_orders()


def line(number: int, day: str = "2015-03-01", price: str = "10.25") -> OrderLine:
    return OrderLine(
        line=number,
        id=f"order-{number}",
        date=day,
        time="11:00:00",
        name="hawaiian",
        size="M",
        type="classic",
        price=price,
    )


ORDERS = Orders([line(1), line(2, price="0.10"), line(3, day="2015-03-02")])
RIGHT = Found(
    closed=[(Group("2015-03-01", "classic"), Income(Decimal("10.35"), 2))],
    open=[(Group("2015-03-02", "classic"), Income(Decimal("10.25"), 1))],
    sold=[3, 1, 2],
    cooked=[1, 2, 3],
    rejected=[BAD, BAD],
)


def test_a_delivery_holds_the_orders_of_a_day_and_the_year_is_whole(orders: Orders) -> None:
    year = deliveries(orders)
    assert [line for delivery in year for line in delivery.lines] == list(orders.lines)
    assert all(len({line.date for line in delivery.lines}) == 1 for delivery in year)


def test_a_few_records_of_the_feed_are_no_orders(orders: Orders) -> None:
    bad = [value for delivery in deliveries(orders) for value in delivery.bad]
    assert len(bad) == len(set(bad)) == 6


def test_everybody_is_killed_once_in_an_order_that_the_seed_says() -> None:
    victims = ("broker-0", "income", "executor of income")
    kills = plan(victims, 1_000, Random(1))
    assert Counter(kill.victim for kill in kills) == Counter(victims)
    assert [kill.after_lines for kill in kills] == sorted(kill.after_lines for kill in kills)
    assert all(FIRST * 1_000 <= kill.after_lines <= LAST * 1_000 for kill in kills)
    assert kills == plan(victims, 1_000, Random(1))
    assert kills != plan(victims, 1_000, Random(2))


def test_the_expected_income_of_the_year_is_the_sum_of_its_file(orders: Orders) -> None:
    assert total(expected_income(orders).items()) == Decimal("817860.05")


def test_closed_and_open_days_together_are_right() -> None:
    assert list(differences(RIGHT, ORDERS, BAD)) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (replace(RIGHT, open=[]), "the income of 2015-03-02, classic, is None"),
        (
            replace(RIGHT, open=[*RIGHT.open, *RIGHT.closed]),
            "2015-03-01, classic, is there 2 times",
        ),
        (replace(RIGHT, sold=[1, 2]), "1 sales are missing, the first for line 3"),
        (replace(RIGHT, cooked=[1, 1, 2, 3]), "1 kitchen tickets are too many"),
        (replace(RIGHT, rejected=[BAD, ()]), "0 records are rejected, of the 1"),
        (replace(RIGHT, rejected=[BAD, BAD * 2]), "2 records are rejected, of the 1"),
        (
            replace(RIGHT, closed=[(Group("2015-03-01", "classic"), Income(Decimal("10.34"), 2))]),
            "the income of 2015-03-01, classic, is Income(amount=Decimal('10.34')",
        ),
    ],
)
def test_each_order_lost_doubled_or_wrong_by_a_cent_is_named(wrong: Found, said: str) -> None:
    (found,) = differences(wrong, ORDERS, BAD)
    assert said in found


def test_an_income_reads_the_same_from_the_topic_and_from_the_state() -> None:
    said = '{"day":"2015-03-01","type":"classic","income":"10.35","pizzas":2}'
    assert entry(said) == entry(said.encode()) == RIGHT.closed[0]


def test_the_picture_is_one_that_can_be_looked_at(tmp_path: Path) -> None:
    draw(RIGHT.closed, RIGHT.open, tmp_path / "pictures" / "income.png")
    assert (tmp_path / "pictures" / "income.png").read_bytes().startswith(PNG)
