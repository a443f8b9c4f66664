"""What a person is shown at the end."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from semel_cli.shared.output import Cell, Facts, Table
from semel_pipelines.proof.books import Entry, total
from semel_pipelines.proof.picture import TYPES
from semel_pipelines.proof.run import Result

_SHOWN = 10
"""How many differences are shown."""


def income_table(result: Result) -> Table:
    """Return the income by month and type, closed and open together."""
    sums: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for group, income in (*result.found.closed, *result.found.open):
        sums[group.day[:7], group.type] += income.amount
    rows: list[tuple[Cell, ...]] = []
    for month in sorted({month for month, _ in sums}):
        by_type = [sums[month, each] for each in TYPES]
        rows.append((month, *map(_money, by_type), _money(sum(by_type, Decimal(0)))))
    for name, part in (("Closed", result.found.closed), ("Open", result.found.open)):
        rows.append((name, *(_money(_of(part, each)) for each in TYPES), _money(total(part))))
    return Table(headings=("Month", *map(str.capitalize, TYPES), "All"), rows=rows, right=True)


def facts(result: Result, picture: Path, logs: Path) -> Facts:
    """Return what to say of the run."""
    found, lines = result.found, len(result.orders.lines)
    closed, still_open = total(found.closed), total(found.open)
    ends = sum(result.failures.values())
    batches = ", ".join(f"{name} {count}" for name, count in result.batches.items())
    return Facts(
        {
            "Income": f"{closed:,.2f} closed + {still_open:,.2f} open = {closed + still_open:,.2f}",
            "Straight from the file": _money(result.orders.total),
            "Sales": f"{len(found.sold):,} of {lines:,}",
            "Kitchen tickets": f"{len(found.cooked):,} of {lines:,}",
            "Rejected": f"{' and '.join(str(len(each)) for each in found.rejected)}"
            f" of {result.bad} records that are no orders",
            "Kills survived": f"{len(result.kills)}"
            f" ({', '.join(kill.victim for kill in result.kills)})",
            "Drivers that failed by themselves": ends,
            "Micro-batches": batches,
            "Took": f"{result.took_s:.0f} s",
            "Picture": str(picture),
            **_result(result, logs),
        },
        title="Both pipelines on Spark, exactly once",
    )


def _result(result: Result, logs: Path) -> dict[str, str]:
    if not result.differences:
        return {"Result": "exact: every order line once in each topic, right to the cent"}
    shown = "; ".join(result.differences[:_SHOWN])
    return {
        "Result": f"WRONG: {shown}",
        "Differences": str(len(result.differences)),
        "Logs": str(logs),
    }


def _of(entries: Sequence[Entry], kind: str) -> Decimal:
    return total(entry for entry in entries if entry[0].type == kind)


def _money(amount: Decimal) -> str:
    return f"{amount:,.2f}"
