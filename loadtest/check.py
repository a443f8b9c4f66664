"""Checks what ghz reports: it has no thresholds, and its exit status is 0 for every result.

ghz cannot see errors inside answers, of single partitions or frames: `loadtest.effects`
asks the cluster what has become of the calls.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from loadtest.scenarios import Run

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


class Percentile(TypedDict):
    """How long so many percent of the calls took at most."""

    percentage: int
    latency: int
    """In nanoseconds."""


class Report(TypedDict):
    """What of ghz's JSON (`-O json`) is looked at. Times are nanoseconds."""

    count: int
    total: int
    """How long the whole run took."""
    endReason: str
    errorDistribution: Mapping[str, int]
    statusCodeDistribution: Mapping[str, int]
    latencyDistribution: Sequence[Percentile] | None


def percentile_ms(report: Report, percentage: int) -> float:
    """Return a percentile of the calls' times; infinite if there is none."""
    known = {each["percentage"]: each["latency"] for each in report["latencyDistribution"] or ()}
    return known[percentage] / NS_PER_MS if percentage in known else float("inf")


def rate(report: Report, run: Run) -> float:
    """Return operations a second: calls, or frames."""
    return run.operations * NS_PER_S / report["total"] if report["total"] else 0.0


def check(report: Report, run: Run) -> list[str]:
    """Return what is wrong: failures first, then thresholds."""
    wrong = []
    if report["count"] != run.calls:
        wrong.append(f"{report['count']} of {run.calls} calls were made")
    if report["endReason"] != "normal":
        wrong.append(f"the run ended by {report['endReason']}")
    statuses = report["statusCodeDistribution"]
    wrong += [
        f"{count} calls ended as {status}" for status, count in statuses.items() if status != "OK"
    ]
    if statuses.get("OK", 0) != run.calls:
        wrong.append(f"{statuses.get('OK', 0)} of {run.calls} calls succeeded")
    wrong += [f"{count} times: {error}" for error, count in report["errorDistribution"].items()]
    for percentage, limit in ((50, run.p50_ms), (99, run.p99_ms)):
        found = percentile_ms(report, percentage)
        if not found <= limit:
            wrong.append(f"p{percentage} is {found:.1f} ms, over {limit:g} ms")
    found = rate(report, run)
    if not found >= run.rate_min:
        wrong.append(f"{found:.0f} operations a second are under {run.rate_min:g}")
    return wrong
