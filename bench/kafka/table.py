"""The report as rows of text, which the terminal and the page of docs/ show alike."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.kafka.cells import CELLS, Cell, Contestant, Goal, Unit
from bench.kafka.figures import Values, middle, ratio, ratios
from bench.kafka.report import CellReport, Report, Usage

_WHOLE = 100
"""From here on, numbers are shown without decimals."""


class Table(NamedTuple):
    """A table of text; the first column is to the left, all others to the right."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(report: Report) -> Sequence[Table]:
    """Return all tables, the most important first."""
    return [_results(report), _usage(report), _limits(report)]


def _results(report: Report) -> Table:
    headings = ["", *Contestant, "unit", "times better", "lowest", "highest", "goal"]
    rows = [
        _row(goal, line.values)
        for cell in report.cells
        for goal, line in zip(_cell(cell).lines, cell.lines, strict=True)
    ]
    return Table(
        "Medians; Semel against the best client of Kafka as it is by default", headings, rows
    )


def _row(goal: Goal, values: Values) -> Sequence[str]:
    spread = ratios(goal, values)
    return [
        goal.title,
        *(number(middle(values, each)) for each in Contestant),
        goal.unit,
        _times(ratio(goal, values)),
        *(_times(pick(spread) if spread else None) for pick in (min, max)),
        f"≥ {goal.times:g}",
    ]


def _usage(report: Report) -> Table:
    headings = ["", "client", "ms a transaction, by process", "peak MiB, services", "records each"]
    rows = [
        row
        for cell in report.cells
        for each, usage in cell.usage.items()
        for row in [_usage_row(cell, each, usage)]
    ]
    return Table("Processor time, memory, and records in a transaction", headings, rows)


def _usage_row(cell: CellReport, contestant: Contestant, usage: Usage) -> Sequence[str]:
    used = ", ".join(f"{name} {number(ms)}" for name, ms in usage.processor_ms.items())
    return [
        cell.name,
        contestant,
        f"{number(sum(usage.processor_ms.values()))}: {used}",
        number(sum(mib for name, mib in usage.peak_mib.items() if name != CLIENT)),
        number(cell.records_per_transaction[contestant]),
    ]


CLIENT = "client"
"""The name of the client's own process among others."""


def _limits(report: Report) -> Table:
    rows = [[limit.name, number(limit.value), limit.unit] for limit in report.limits]
    rows += [[f"{name}, idle", number(mib), "MiB"] for name, mib in report.idle_mib.items()]
    return Table("The machine, and idle services", ["", "", "unit"], rows)


def _cell(report: CellReport) -> Cell:
    return next(cell for cell in CELLS if cell.name == report.name)


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def number(value: float | None) -> str:
    """Return it as people read it."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= _WHOLE else f"{value:,.2f}"


def series(report: Report, unit: Unit, kind: Sequence[Cell]) -> Iterator[tuple[Cell, Values]]:
    """Yield the values of one unit of cells that were measured."""
    measured = {cell.name: cell for cell in report.cells}
    for cell in kind:
        if cell.name in measured:
            for goal, line in zip(cell.lines, measured[cell.name].lines, strict=True):
                if goal.unit is unit:
                    yield cell, line.values
