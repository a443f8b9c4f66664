"""A picture of each curve: processor time and latency on logarithmic axes, and memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.growth.curve import Curve, Point, Series, all_series, values
from bench.growth.probe import CPU_US

_FAINT = "#8a8a8a"
_MEMORY = "MiB"
Colour = tuple[float, float, float, float]
Line = tuple[str, list[tuple[float, float]]]


def draw(curve: Curve, points: Sequence[Point], path: Path) -> None:
    """Write the picture, in the format that the name of its file says."""
    known = [point for point in points if point.size > 0]
    panels = [
        ("µs of processor, all processes", list(_processor(known))),
        ("ms", list(_lines(known, lambda each: each.unit.startswith("ms")))),
        (_MEMORY, list(_lines(known, lambda each: each.unit == _MEMORY))),
    ]
    shown = [panel for panel in panels if panel[1]]
    figure = Figure(figsize=(5.5 * len(shown), 5.5), layout="constrained")
    grid = figure.subplots(1, len(shown), squeeze=False)
    labels = dict.fromkeys(label for _, lines in shown for label, _ in lines)
    colours = {label: colormaps["tab20"](number % 20) for number, label in enumerate(labels)}
    for axes, (unit, lines) in zip(grid[0], shown, strict=True):
        _draw(axes, curve.axis, unit, lines, colours)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def _draw(
    axes: Axes, axis: str, unit: str, lines: Iterable[Line], colours: Mapping[str, Colour]
) -> None:
    for label, pairs in lines:
        sizes, numbers = zip(*pairs, strict=True)
        axes.plot(sizes, numbers, "o-", markersize=3, linewidth=1.3, label=label, c=colours[label])
    axes.set_xscale("log")
    if unit == _MEMORY:
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")
    axes.set_xlabel(axis)
    axes.set_title(unit, loc="left", fontsize=11)
    axes.grid(color="#e6e6e6", linewidth=0.7)
    axes.tick_params(colors=_FAINT, labelsize=9)
    axes.legend(fontsize=7, frameon=False, ncols=2, loc="upper left", bbox_to_anchor=(0, -0.12))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _processor(points: Sequence[Point]) -> Iterable[Line]:
    """Yield what each operation costs all processes together."""
    operations = [
        one_series.operation
        for one_series in all_series(points)
        if one_series.unit.startswith(CPU_US)
    ]
    for operation in dict.fromkeys(operations):
        used = [(point.size, _sum(point, operation)) for point in points]
        yield operation, [(size, value) for size, value in used if value > 0]


def _sum(point: Point, operation: str) -> float:
    return sum(
        reading.value
        for reading in point.readings
        if reading.operation == operation and reading.unit.startswith(CPU_US)
    )


def _lines(points: Sequence[Point], is_shown: Callable[[Series], bool]) -> Iterable[Line]:
    for series in filter(is_shown, all_series(points)):
        label = series.of if series.operation == "memory" else series.operation
        yield label, values(points, series)
