"""The picture: income by day and type of pizza, closed and open."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from semel_pipelines.proof.books import Entry, total

TYPES = ("classic", "supreme", "chicken", "veggie")
_COLOURS = {"classic": "#b5442e", "supreme": "#7b4b94", "chicken": "#c98a1b", "veggie": "#4d7c3a"}
_INK, _FAINT = "#2b2b2b", "#8a8a8a"
_WEEK = 7


def draw(closed: Sequence[Entry], still_open: Sequence[Entry], path: Path) -> None:
    """Write the picture, in the format that the name of its file says."""
    figure = Figure(figsize=(11, 8.5), layout="constrained")
    first, *others = figure.subplots(len(TYPES), 1, sharex=True, sharey=True)
    for axes, kind in zip((first, *others), TYPES, strict=True):
        _draw_type(axes, kind, _by_day(closed, kind), _by_day(still_open, kind))
    months = sorted({group.day[:7] for group, _ in closed})
    firsts = [date.fromisoformat(f"{month}-01") for month in months]
    axes.set_xticks([_x(day) for day in firsts], [f"{day:%b}" for day in firsts])
    whole = total((*closed, *still_open))
    figure.suptitle(
        f"Income of 2015 by day and type of pizza: {whole:,.2f}",
        x=0.01, ha="left", fontsize=15, color=_INK, fontweight="bold",
    )  # fmt: skip
    figure.supxlabel(
        f"{total(closed):,.2f} on days that are closed, {total(still_open):,.2f} on days that are"
        " still open (pale). Line: mean of seven days.",
        x=0.01, ha="left", fontsize=10, color=_FAINT,
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _draw_type(
    axes: Axes, kind: str, closed: Mapping[date, float], still_open: Mapping[date, float]
) -> None:
    colour = _COLOURS[kind]
    axes.bar(
        [_x(day) for day in closed], list(closed.values()), width=1.0, color=colour, alpha=0.45
    )
    axes.bar(
        [_x(day) for day in still_open],
        list(still_open.values()),
        width=1.0,
        color=colour,
        alpha=0.18,
    )
    days, means = _means({**closed, **still_open})
    axes.plot([_x(day) for day in days], means, color=colour, linewidth=1.8)
    amount = sum(closed.values()) + sum(still_open.values())
    axes.set_title(f"{kind}  {amount:,.2f}", loc="left", fontsize=11, color=colour)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.tick_params(colors=_FAINT, labelsize=9)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.margins(x=0.005)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _by_day(entries: Sequence[Entry], kind: str) -> dict[date, float]:
    found = {
        date.fromisoformat(group.day): float(income.amount)
        for group, income in entries
        if group.type == kind
    }
    return dict(sorted(found.items()))


def _means(amounts: Mapping[date, float]) -> tuple[list[date], list[float]]:
    """Return the mean of the week around each day; a day on which nothing is sold is no day."""
    days = sorted(amounts)
    half = timedelta(days=_WEEK // 2)
    means = []
    for day in days:
        week = [amounts[each] for each in days if abs(each - day) <= half]
        means.append(sum(week) / len(week))
    return days, means


def _x(day: date) -> float:
    return float(day.toordinal())
