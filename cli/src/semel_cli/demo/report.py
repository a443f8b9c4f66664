"""What came out: the income as a reader of committed records sees it, and whether it is right."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from semel_cli.demo.input import Orders
from semel_cli.demo.tally import Tally
from semel_cli.shared.output import Cell, Facts, Json, Table

if TYPE_CHECKING:
    from aiosemel import SemelClient

TYPES = ("chicken", "classic", "supreme", "veggie")
MONTHS = range(1, 13)


@dataclass(slots=True)
class Sums:
    """The income of a topic, summed up."""

    total: Decimal = Decimal(0)
    seen: Counter[int] = field(default_factory=Counter)
    """How often each order line has come."""
    by_month_and_type: defaultdict[tuple[int, str], Decimal] = field(
        default_factory=lambda: defaultdict(Decimal)
    )

    def add(self, value: bytes) -> None:
        """Take one line of income."""
        income = json.loads(value)
        price = Decimal(income["price"])
        self.total += price
        self.seen[income["line"]] += 1
        self.by_month_and_type[int(income["date"][5:7]), income["type"]] += price

    @property
    def lines(self) -> int:
        """How many lines have come."""
        return self.seen.total()

    @property
    def duplicates(self) -> int:
        """Lines that came again."""
        return self.lines - len(self.seen)

    def losses(self, orders: Orders) -> int:
        """Lines that never came."""
        return sum(line.line not in self.seen for line in orders.lines)

    def is_exact(self, orders: Orders) -> bool:
        """Whether every line came exactly once, and the income is right to the cent."""
        expected = Counter(line.line for line in orders.lines)
        return self.seen == expected and self.total == orders.total


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The result of a run."""

    title: str
    orders: Orders
    tally: Tally
    sums: Sums
    kills: Counter[str]
    took_s: float


async def sum_up(client: "SemelClient", topic: str, ends: dict[int, int]) -> Sums:
    """Read the committed records of a topic up to these offsets, by partition."""
    from aiosemel import ConsumerOptions, OffsetReset, TopicPartition

    sums = Sums()
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with client.consumer(options=options) as consumer:
        consumer.assign((topic, partition) for partition in ends)
        unread = {TopicPartition(topic, each): end for each, end in ends.items() if end}
        while unread:
            for batches in (await consumer.poll_columns()).values():
                for value in (value for batch in batches for value in batch.values):
                    sums.add(value or b"{}")
            positions = consumer.positions()
            unread = {each: end for each, end in unread.items() if positions.get(each, 0) < end}
    return sums


def income_table(sums: Sums) -> Table:
    """Return the income by month and type of pizza."""
    rows: list[tuple[Cell, ...]] = []
    for month in MONTHS:
        by_type = [sums.by_month_and_type[month, each] for each in TYPES]
        rows.append((f"2015-{month:02}", *map(_money, by_type), _money(sum(by_type, Decimal(0)))))
    by_type = [sum(sums.by_month_and_type[m, each] for m in MONTHS) or Decimal(0) for each in TYPES]
    rows.append(("2015", *map(_money, by_type), _money(sums.total)))
    return Table(headings=("Month", *map(str.capitalize, TYPES), "All"), rows=rows, right=True)


def exactly_once_facts(result: JobResult) -> Facts:
    """Return what to say of the job with transactions."""
    tally, sums, orders = result.tally, result.sums, result.orders
    kills = ", ".join(f"{name} {count}" for name, count in sorted(result.kills.items()))
    return Facts(
        {
            "Order lines": f"{sums.lines:,} of {len(orders.lines):,}"
            f" ({sums.duplicates} twice, {sums.losses(orders)} lost)",
            "Income": _money(sums.total),
            "Straight from the file": _money(orders.total),
            "Transactions": f"{len(tally.committed):,} committed, {len(tally.aborted):,} aborted"
            f" ({tally.aborted_lines:,} lines of income never seen)",
            "Kills survived": f"{result.kills.total()} ({kills})",
            "Took": f"{result.took_s:.1f} s",
            "Result": "exact: every order line exactly once, right to the cent"
            if sums.is_exact(orders)
            else "WRONG",
        },
        title=result.title,
    )


def plain_facts(result: JobResult) -> Facts:
    """Return what to say of the job without transactions."""
    sums, orders = result.sums, result.orders
    off = sums.total - orders.total
    chance = "chance gave no duplicate and no loss this time; nothing has prevented them"
    return Facts(
        {
            "Order lines": f"{sums.lines:,} of {len(orders.lines):,}"
            f" ({sums.duplicates:,} twice, {sums.losses(orders):,} lost)",
            "Income": f"{_money(sums.total)}, where {_money(orders.total)} is right"
            f" ({'+' if off > 0 else ''}{_money(off)})",
            "Kills": str(result.kills.total()),
            "Result": "wrong" if not sums.is_exact(orders) else chance,
        },
        title=result.title,
    )


def document(exactly_once: JobResult, plain: "JobResult | None", seed: int) -> Json:
    """Return the report for programs."""
    return {
        "seed": seed,
        "exactly_once": _job_document(exactly_once),
        "plain": None if plain is None else _job_document(plain),
    }


def _job_document(result: JobResult) -> Json:
    sums, orders = result.sums, result.orders
    return {
        "exact": sums.is_exact(orders),
        "order_lines": len(orders.lines),
        "income_lines": sums.lines,
        "duplicates": sums.duplicates,
        "losses": sums.losses(orders),
        "income": str(sums.total),
        "expected_income": str(orders.total),
        "transactions_committed": len(result.tally.committed),
        "transactions_aborted": len(result.tally.aborted),
        "kills": dict(result.kills),
        "took_s": round(result.took_s, 1),
        "by_month_and_type": {
            f"2015-{month:02}": {each: str(sums.by_month_and_type[month, each]) for each in TYPES}
            for month in MONTHS
        },
    }


def _money(amount: Decimal) -> str:
    return f"{amount:,.2f}"
