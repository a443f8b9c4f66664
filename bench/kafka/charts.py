"""Charts of a report: throughput against producers, and how latencies are distributed."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from bench.kafka.cells import CELLS, Contestant, Unit
from bench.kafka.figures import SHARES
from bench.kafka.page import FOLDER, chart_path
from bench.kafka.report import CellReport, Report
from bench.kafka.table import series
from bench.workloads import Kind

_COLOURS = {
    Contestant.SEMEL: "#0b6e4f",
    Contestant.JAVA: "#c8553d",
    Contestant.CONFLUENT: "#3d6fc8",
    Contestant.AIOKAFKA: "#b08900",
    Contestant.JAVA_FLUSH: "#8a8a8a",
}
_LATENCIES = {
    "transactions-1": "commit, 4 records of 100 B",
    "visible": "send → read_committed poll",
}
_GRID = "#e6e6e6"


def draw(report: Report) -> None:
    """Write the charts that the report has figures for."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    # So that the same figures give the same file.
    mpl.rcParams["svg.hashsalt"] = "semel"
    throughput, axes = _chart(1)
    _throughput(report, axes[0])
    _save(throughput, chart_path(report, "throughput"))
    cells = [cell for cell in report.cells if cell.name in _LATENCIES]
    if cells:
        latency, axes = _chart(len(cells))
        for cell, each in zip(cells, axes, strict=True):
            _latency(cell, each)
        _save(latency, chart_path(report, "latency"))


def _throughput(report: Report, axes: Axes) -> None:
    cells = [cell for cell in CELLS if cell.workload.kind is Kind.TRANSACTIONS]
    measured = list(series(report, Unit.TRANSACTIONS, cells))
    for contestant in Contestant:
        points = [
            (cell.workload.producers, values[contestant])
            for cell, values in measured
            if values.get(contestant)
        ]
        if not points:
            continue
        producers = [count for count, _ in points]
        middles = [median(taken) for _, taken in points]
        below = [median(taken) - min(taken) for _, taken in points]
        above = [max(taken) - median(taken) for _, taken in points]
        colour = _COLOURS[contestant]
        axes.errorbar(
            producers,
            middles,
            yerr=[below, above],
            label=contestant,
            color=colour,
            marker="o",
            markersize=4,
            capsize=3,
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 8, 64], labels=["1", "8", "64"])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("producers")
    axes.set_title("transactions/s, 4 records of 100 B to 4 partitions", loc="left", fontsize=11)
    axes.legend(frameon=False)


def _latency(cell: CellReport, axes: Axes) -> None:
    for contestant in Contestant:
        latencies: Sequence[float] = cell.distributions.get(contestant, ())
        if latencies:
            shares = [share * 100 for share in SHARES]
            axes.plot(latencies, shares, label=contestant, color=_COLOURS[contestant])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("ms")
    axes.set_ylabel("% of transactions within")
    axes.set_title(_LATENCIES[cell.name], loc="left", fontsize=11)
    axes.legend(frameon=False)


def _chart(panels: int) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(5.5 * panels, 4.5), layout="constrained")
    grid = list(figure.subplots(1, panels, squeeze=False)[0])
    for axes in grid:
        axes.grid(color=_GRID, linewidth=0.7)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return figure, grid


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
