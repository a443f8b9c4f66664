"""From samples to figures: the one place where rates, percentiles and ratios are computed."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import assert_never

from bench.kafka.cells import Contestant, Goal, Unit
from bench.measure import percentile
from bench.workloads import Sample, Workload

Values = Mapping[Contestant, Sequence[float]]
"""A figure of each run, by contender; failed runs lack some, or all."""

SHARES = tuple(step / 200 for step in range(200))
"""Of the points of a distribution."""


def figure_of(sample: Sample, unit: Unit, workload: Workload) -> float:
    """Return what a line of the table says of a sample."""
    match unit:
        case Unit.TRANSACTIONS:
            return sample.transactions / sample.elapsed_s
        case Unit.RECORDS:
            return sample.records / sample.elapsed_s
        case Unit.MEGABYTES:
            return sample.records * workload.record_size_bytes / 1e6 / sample.elapsed_s
        case Unit.P50:
            return percentile(list(sample.latencies_ms), 0.5)
        case Unit.P99:
            return percentile(list(sample.latencies_ms), 0.99)
        case unknown:
            assert_never(unknown)


def distribution(samples: Sequence[Sample]) -> tuple[float, ...]:
    """Return the latencies at ``SHARES`` of all samples together, in ms; none if there are none."""
    latencies = [each for sample in samples for each in sample.latencies_ms]
    return tuple(percentile(latencies, share) for share in SHARES) if latencies else ()


def middle(values: Values, contestant: Contestant) -> float | None:
    """Return the median of the runs; None where nothing was measured."""
    taken = values.get(contestant)
    return median(taken) if taken else None


def ratio(goal: Goal, values: Values) -> float | None:
    """Return how many times better Semel's median is than the best rival's; None without one."""
    medians = {each: found for each in Contestant if (found := middle(values, each)) is not None}
    return _times_better(goal, medians)


def ratios(goal: Goal, values: Values) -> Sequence[float]:
    """Return the same of each run, where Semel and its rivals took turns."""
    runs = max((len(taken) for taken in values.values()), default=0)
    found = (
        _times_better(
            goal, {each: taken[run] for each, taken in values.items() if run < len(taken)}
        )
        for run in range(runs)
    )
    return [each for each in found if each is not None]


def _times_better(goal: Goal, figures: Mapping[Contestant, float]) -> float | None:
    semel = figures.get(Contestant.SEMEL)
    rivals = [figures[rival] for rival in goal.rivals if rival in figures]
    if semel is None or not rivals:
        return None
    return min(rivals) / semel if goal.unit.less_is_better else semel / max(rivals)
