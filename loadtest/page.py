"""A report of ghz as a page of HTML: the figures, and how the calls' times are spread."""

from collections.abc import Sequence
from html import escape
from typing import TypedDict

from loadtest.check import NS_PER_MS, Report, percentile_ms, rate
from loadtest.scenarios import Run

_BUCKETS = 40
_STYLE = (
    "body{font:15px sans-serif;margin:2em auto;max-width:48em}td,th{text-align:right;padding:0 1em}"
    "i{display:block;background:#4a7;height:9px;margin:1px 0}.wrong{color:#b00}"
)


class Detail(TypedDict):
    """One call."""

    latency: int
    """In nanoseconds."""


def page(run: Run, report: Report, details: Sequence[Detail], wrong: Sequence[str]) -> str:
    """Return the page of one run."""
    times = sorted(detail["latency"] / NS_PER_MS for detail in details)
    figures = "".join(
        f"<tr><th>p{each}<td>{percentile_ms(report, each):.2f} ms" for each in (50, 90, 95, 99)
    )
    problems = "".join(f"<p class=wrong>{escape(each)}" for each in wrong)
    name = escape(run.name)
    return (
        f"<!doctype html><meta charset=utf-8><title>{name}</title><style>{_STYLE}</style>"
        f"<h1>{name}</h1>{problems}<p>{report['count']} calls, {run.operations} operations,"
        f" {rate(report, run):,.0f} operations a second."
        f"<table>{figures}</table><h2>Times of calls</h2><table>{''.join(_bars(times))}</table>\n"
    )


def _bars(times: Sequence[float]) -> list[str]:
    if not times:
        return []
    width = (times[-1] - times[0]) / _BUCKETS or 1.0
    counts = [0] * (_BUCKETS + 1)
    for time in times:
        counts[int((time - times[0]) / width)] += 1
    longest = max(counts)
    return [
        f"<tr><td>{times[0] + number * width:.2f} ms<td>{count}"
        f"<td style=width:30em><i style=width:{30 * count / longest:.1f}em></i>"
        for number, count in enumerate(counts)
    ]
