"""What a curve is, as data, and its slope."""

import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

LAST = 3
"""So many points at the end give the slope there, which what is fixed does not hide."""


class Series(NamedTuple):
    """What one line of a curve shows."""

    operation: str
    of: str
    """A process, or what of the operation it is."""
    unit: str


class Reading(Struct, frozen=True, kw_only=True):
    """One number at one point."""

    operation: str
    of: str
    unit: str
    value: float

    @property
    def series(self) -> Series:
        """The line that it belongs to."""
        return Series(self.operation, self.of, self.unit)


class Point(Struct, frozen=True, kw_only=True):
    """Everything that was measured at one size."""

    size: float
    readings: tuple[Reading, ...]


Measure = Callable[[Sequence[float], Path], AsyncIterator[Point]]
"""Grows something from size to size in an empty folder, and yields a point at each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Something that grows."""

    name: str
    axis: str
    """What the sizes count."""
    sizes: Sequence[float]
    measure: Measure
    why: str
    """The curves that are not flat, and the reasons: for readers of the report."""


class Slope(NamedTuple):
    """Exponents of a line, None where there are too few sizes."""

    whole: float | None
    end: float | None


def slope(points: Sequence[Point], series: Series) -> Slope:
    """Fit `value = factor * size ** exponent`, over all sizes but 0, and over the last."""
    pairs = [(size, value) for size, value in values(points, series) if size > 0 and value > 0]
    return Slope(whole=_exponent(pairs), end=_exponent(pairs[-LAST:]))


def values(points: Sequence[Point], series: Series) -> list[tuple[float, float]]:
    """Return the sizes and values of one line."""
    return [
        (point.size, reading.value)
        for point in points
        for reading in point.readings
        if reading.series == series
    ]


def all_series(points: Sequence[Point]) -> list[Series]:
    """Return the lines of a curve, in the order in which they were measured."""
    return list(dict.fromkeys(reading.series for point in points for reading in point.readings))


def _exponent(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the least squares, of logarithms."""
    xs = [math.log(size) for size, _ in pairs]
    ys = [math.log(value) for _, value in pairs]
    if len(set(xs)) <= 1:
        return None
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    return sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / spread
