"""Whether it all adds up: what the topics hold at the end, against the orders. No I/O."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from semel_cli.demo.input import Orders


class Group(NamedTuple):
    """What income is summed by."""

    day: str
    type: str


@dataclass(frozen=True, slots=True)
class Income:
    """Of a day and a type."""

    amount: Decimal
    pizzas: int


Entry = tuple[Group, Income]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The contents of the topics, and the open windows in Spark's state."""

    closed: Sequence[Entry]
    open: Sequence[Entry]
    sold: Sequence[int]
    """The numbers of the order lines in the topic of sales."""
    cooked: Sequence[int]
    """Those in the topic of the kitchen."""
    rejected: Sequence[Sequence[bytes]]
    """What each pipeline has rejected."""


def entry(line: bytes | str) -> Entry:
    """Read an income as both the topic and the state give it."""
    said = json.loads(line)
    income = Income(amount=Decimal(said["income"]), pizzas=said["pizzas"])
    return Group(said["day"], said["type"]), income


def line_number(value: bytes) -> int:
    """Return which order line a record of sales or of the kitchen is about."""
    number: int = json.loads(value)["line"]
    return number


def total(entries: Iterable[Entry]) -> Decimal:
    """Return the sum of some income."""
    return sum((income.amount for _, income in entries), Decimal(0))


def expected_income(orders: Orders) -> dict[Group, Income]:
    """Return the income by day and type, straight from the orders."""
    amounts: dict[Group, Decimal] = {}
    pizzas: Counter[Group] = Counter()
    for line in orders.lines:
        group = Group(line.date, line.type)
        amounts[group] = amounts.get(group, Decimal(0)) + Decimal(line.price)
        pizzas[group] += 1
    return {group: Income(amount, pizzas[group]) for group, amount in amounts.items()}


def differences(found: Found, orders: Orders, bad: Sequence[bytes]) -> Iterator[str]:
    """Yield what is wrong, a sentence each; nothing if all adds up."""
    entries = (*found.closed, *found.open)
    for group, times in Counter(group for group, _ in entries).items():
        if times > 1:
            yield f"the income of {group.day}, {group.type}, is there {times} times"
    expected, income = expected_income(orders), dict(entries)
    for group in sorted(expected.keys() | income.keys()):
        if income.get(group) != expected.get(group):
            yield (
                f"the income of {group.day}, {group.type}, is {income.get(group)},"
                f" not {expected.get(group)}"
            )
    lines = Counter(line.line for line in orders.lines)
    for name, numbers in (("sales", found.sold), ("kitchen tickets", found.cooked)):
        yield from _miscounts(name, Counter(numbers), lines)
    for rejected in found.rejected:
        if Counter(rejected) != Counter(bad):
            yield f"{len(rejected)} records are rejected, of the {len(bad)} that are no orders"


def _miscounts(name: str, numbers: Counter[int], lines: Counter[int]) -> Iterator[str]:
    missing, surplus = lines - numbers, numbers - lines
    if missing:
        yield f"{missing.total():,} {name} are missing, the first for line {min(missing)}"
    if surplus:
        yield f"{surplus.total():,} {name} are too many, the first for line {min(surplus)}"
