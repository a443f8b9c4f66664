"""The parts of the demo, each for itself: input, plan of kills, tally of the log, report."""

import json
from collections import Counter
from decimal import Decimal
from random import Random

import pytest

from aiosemel import ConsumerRecord
from semel.common.v1.records_pb2 import RecordBatch
from semel_cli.demo import input as demo_input
from semel_cli.demo.application import income_of
from semel_cli.demo.chaos import Kill, carry_out, plan_kills
from semel_cli.demo.input import InputMissingError, OrderLine, Orders, read_orders
from semel_cli.demo.report import Sums, income_table
from semel_cli.demo.tally import Tally
from semel_common.record_batches.batches import Columns, control_batch, seal

VICTIMS = ("coordinator-0", "broker-0", "app-0")


@pytest.fixture(scope="module")
def orders() -> Orders:
    """All orders: only the process that runs these tests reads them."""
    return read_orders()


def order(line: int, price: str = "10.25") -> OrderLine:
    return OrderLine(
        line=line,
        id=f"order-{line}",
        date="2015-03-01",
        time="11:00:00",
        name="hawaiian",
        size="M",
        type="classic",
        price=price,
    )


def record_of(line: OrderLine) -> ConsumerRecord:
    return ConsumerRecord(
        topic="orders", partition=0, offset=0, timestamp_ms=0, key=line.key, value=line.value
    )


def batch(*lines: OrderLine, epoch: int, transactional: bool = True) -> RecordBatch:
    values = [income_of(record_of(line)).value for line in lines]
    columns = Columns(values=values, keys=None, timestamps_ms=[1] * len(values), headers={})
    return seal(
        columns, producer_id=7, producer_epoch=epoch, base_sequence=0, transactional=transactional
    )


def marker(*, epoch: int, committed: bool) -> RecordBatch:
    return control_batch(
        producer_id=7,
        producer_epoch=epoch,
        committed=committed,
        coordinator_epoch=1,
        timestamp_ms=1,
    )


# -- input


def test_the_file_holds_a_year_of_orders(orders: Orders) -> None:
    assert len(orders.lines) == 49_574
    assert len({line.id for line in orders.lines}) == 21_350
    assert orders.total == Decimal("817860.05")
    assert [line.line for line in orders.first(3).lines] == [1, 2, 3]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_input, "_PACKAGE", "no_such_package")
    with pytest.raises(InputMissingError, match="pip install"):
        read_orders()


def test_income_keeps_line_type_and_price_of_its_order() -> None:
    income = income_of(record_of(order(3)))
    assert income.key == b"hawaiian"
    assert json.loads(income.value or b"") == {
        "line": 3,
        "name": "hawaiian",
        "type": "classic",
        "size": "M",
        "date": "2015-03-01",
        "price": "10.25",
    }


# -- kills


def plan(seed: int, loaded_first: float) -> tuple[Kill, ...]:
    return plan_kills(VICTIMS, 1_000, Random(seed), rounds=2, loaded_first=loaded_first)


@pytest.mark.parametrize("loaded_first", [0.0, 0.85])
@pytest.mark.parametrize("seed", range(20))
def test_everybody_is_killed_twice_while_there_are_orders_left(
    seed: int, loaded_first: float
) -> None:
    kills = plan(seed, loaded_first)
    assert Counter(kill.victim for kill in kills) == dict.fromkeys(VICTIMS, 2)
    assert [kill.after_lines for kill in kills] == sorted(kill.after_lines for kill in kills)
    assert all(kill.after_lines < kill.orders_by_then < 1_000 for kill in kills)


def test_a_seed_makes_the_same_plan_again() -> None:
    assert plan(1, 0.5) == plan(1, 0.5)
    assert plan(1, 0.5) != plan(2, 0.5)


class Diary:
    """Stage and course in one: writes down what happens."""

    def __init__(self) -> None:
        self.happened: list[str] = []

    async def wait_ready(self, name: str) -> None:
        self.happened.append(f"{name} ready")

    async def kill(self, name: str) -> None:
        self.happened.append(f"{name} killed")

    async def start(self, name: str) -> None:
        self.happened.append(f"{name} started")

    async def load_up_to(self, lines: int) -> None:
        self.happened.append(f"orders {lines}")

    async def reached(self, lines: int) -> None:
        self.happened.append(f"income {lines}")


async def test_kills_happen_one_after_the_other_at_their_moments() -> None:
    diary = Diary()
    kills = [
        Kill(victim="a", after_lines=1, orders_by_then=2),
        Kill(victim="b", after_lines=3, orders_by_then=4),
    ]
    await carry_out(kills, diary, diary, Random(0))
    assert [each for each in diary.happened if "orders" not in each] == [
        *("a ready", "income 1", "a killed", "a started"),
        *("b ready", "income 3", "b killed", "b started"),
    ]
    assert {"orders 2", "orders 4"} <= {*diary.happened}


# -- tally


def test_records_count_when_their_transaction_has_committed() -> None:
    tally = Tally()
    tally.take(0, batch(order(1), order(2), epoch=1))
    tally.take(1, batch(order(3), epoch=1))
    assert tally.visible.lines == 0
    tally.take(0, marker(epoch=1, committed=True))
    tally.take(1, marker(epoch=1, committed=True))
    assert (tally.visible.lines, tally.visible.total) == (3, Decimal("30.75"))
    assert (len(tally.committed), len(tally.aborted)) == (1, 0)


def test_records_of_an_aborted_transaction_are_counted_apart() -> None:
    tally = Tally()
    tally.take(0, batch(order(1), epoch=1))
    tally.take(0, batch(order(1), epoch=2))
    tally.take(0, marker(epoch=1, committed=False))
    tally.take(0, marker(epoch=2, committed=True))
    assert (tally.visible.lines, tally.aborted_lines) == (1, 1)
    assert (len(tally.committed), len(tally.aborted)) == (1, 1)


def test_records_without_a_transaction_count_at_once() -> None:
    tally = Tally()
    tally.take(0, batch(order(1), epoch=0, transactional=False))
    assert tally.visible.lines == 1


def test_a_marker_without_records_adds_no_lines() -> None:
    tally = Tally()
    tally.take(0, marker(epoch=1, committed=True))
    assert tally.visible.lines == 0


# -- report


def sums_of(*lines: OrderLine) -> Sums:
    sums = Sums()
    for line in lines:
        sums.add(income_of(record_of(line)).value or b"")
    return sums


def test_every_line_exactly_once_is_exact() -> None:
    assert sums_of(order(2), order(1)).is_exact(Orders([order(1), order(2)]))


@pytest.mark.parametrize(
    ("lines", "duplicates", "losses"),
    [((1, 1, 2), 1, 0), ((1,), 0, 1), ((1, 1), 1, 1), ((1, 2, 3), 0, 0)],
    ids=["twice", "lost", "twice and lost", "unknown"],
)
def test_anything_else_is_not(lines: tuple[int, ...], duplicates: int, losses: int) -> None:
    orders, sums = Orders([order(1), order(2)]), sums_of(*map(order, lines))
    assert not sums.is_exact(orders)
    assert (sums.duplicates, sums.losses(orders)) == (duplicates, losses)


def test_a_wrong_price_is_not_exact() -> None:
    assert not sums_of(order(1, price="10.26")).is_exact(Orders([order(1)]))


def test_the_table_adds_up_months_and_types(orders: Orders) -> None:
    table = income_table(sums_of(*orders.lines))
    assert table.headings == ("Month", "Chicken", "Classic", "Supreme", "Veggie", "All")
    assert table.rows[0] == (
        *("2015-01", "16,188.75", "18,619.40", "17,929.75", "17,055.40", "69,793.30"),
    )
    assert table.rows[-1][-1] == "817,860.05"
