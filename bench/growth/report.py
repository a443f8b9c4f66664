"""What was measured, as rows of text: for a terminal and for the docs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table

from bench.growth.curve import Curve, Point, Series, all_series, slope, values
from bench.growth.probe import CPU_US
from bench.growth.results import Result

_LEFT_OUT_US = 60.0
"""Processor time that is less than this at every size is left out: it is what a process always
does, and no part of the operation."""
_WHOLE, _ONE_DECIMAL = 100, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table."""

    operation: str
    of: str
    unit: str
    cells: Sequence[str]
    """A value for each size."""
    whole: str
    """The exponent over all sizes."""
    end: str
    """The exponent over the last sizes."""

    @property
    def texts(self) -> Sequence[str]:
        """All its columns."""
        return (self.operation, self.of, self.unit, *self.cells, self.whole, self.end)


def headings(points: Sequence[Point]) -> Sequence[str]:
    """Return the names of the columns of ``rows``."""
    sizes = (f"{point.size:,.10g}" for point in points)
    return ("", "of", "unit", *sizes, "exponent", "at the end")


def rows(points: Sequence[Point]) -> Iterator[Row]:
    """Yield a row for each series; the operation is named in its first row only."""
    last = ""
    for series in all_series(points):
        at = dict(values(points, series))
        if series.unit.startswith(CPU_US) and max(at.values()) < _LEFT_OUT_US:
            continue
        yield _row(points, series, at, "" if series.operation == last else series.operation)
        last = series.operation


def table(curve: Curve, result: Result) -> Table:
    """Return the rows for a terminal."""
    shown = Table(title=f"{curve.name}: {curve.axis}", box=None)
    for heading in headings(result.points):
        justify = "left" if heading in {"", "of", "unit"} else "right"
        shown.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]  # one of Rich's words
    for row in rows(result.points):
        shown.add_row(*row.texts)
    return shown


def _row(points: Sequence[Point], series: Series, at: dict[float, float], operation: str) -> Row:
    fitted = slope(points, series)
    return Row(
        operation=operation,
        of=series.of,
        unit=series.unit,
        cells=[_number(at[point.size]) if point.size in at else "" for point in points],
        whole=_exponent(fitted.whole),
        end=_exponent(fitted.end),
    )


def _number(value: float) -> str:
    decimals = 0 if value >= _WHOLE else 1 if value >= _ONE_DECIMAL else 2
    return f"{value:,.{decimals}f}"


def _exponent(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
