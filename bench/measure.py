"""Repetition, medians, and the table that is printed."""

import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

_WHOLE = 100
"""From here on, numbers are shown without decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of one run."""

    name: str
    value: float
    unit: str
    goal: str = ""
    """The goal, for people; empty: no goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One number over all runs."""

    name: str
    unit: str
    goal: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle of the runs."""
        return statistics.median(self.values)


async def repeat(run: Callable[[], Awaitable[list[Figure]]], times: int) -> list[Measured]:
    """Run a workload several times; every run must give the same figures in the same order."""
    runs = [await run() for _ in range(times)]
    return [
        Measured(
            name=figures[0].name,
            unit=figures[0].unit,
            goal=figures[0].goal,
            values=tuple(figure.value for figure in figures),
        )
        for figures in zip(*runs, strict=True)
    ]


def percentile(values: list[float], share: float) -> float:
    """Return the value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def show(measured: list[Measured]) -> None:
    """Print one table of medians with their spread."""
    table = Table(box=None)
    for column in ("", "median", "lowest", "highest", "unit", "goal"):
        table.add_column(column, justify="left" if column in ("", "unit", "goal") else "right")
    for each in measured:
        table.add_row(
            each.name,
            _number(each.median),
            _number(min(each.values)),
            _number(max(each.values)),
            each.unit,
            each.goal,
        )
    Console().print(table)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= _WHOLE else f"{value:,.2f}"
