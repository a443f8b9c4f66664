"""A group coordinator's metrics for Prometheus: groups, open transactions on them, and lag."""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from semel_group.loops.consumer_lag import LagWatch, Position
from semel_group.machine import GroupMachine
from semel_group.machine.gauges import GroupStanding
from semel_runtime.clock import Clock
from semel_runtime.metrics import Metrics
from semel_runtime.metrics.cluster import cluster_figures

_GROUP = ("group",)


class GroupMetrics:
    """Of one group coordinator."""

    def __init__(
        self, metrics: Metrics, machine: GroupMachine, lag: LagWatch, clock: Clock
    ) -> None:
        """Look nothing up yet."""
        self._machine = machine
        self._lag = lag
        self._clock = clock
        metrics.look_up(self._figures)

    def _figures(self) -> Iterable[Metric]:
        yield from cluster_figures(self._machine.cluster)
        yield from group_figures(tuple(self._machine.groups.standing()), self._clock.now_ms())
        yield from self._lag_figures(self._lag.lags)

    def _lag_figures(self, lags: Mapping[Position, int]) -> Iterable[Metric]:
        family = GaugeMetricFamily(
            "semel_group_lag_records",
            "Records that a committed reader of the group has yet to see, as of the last look.",
            labels=(*_GROUP, "topic", "partition"),
        )
        for position, lag in lags.items():
            topic = self._machine.topics.name_of(position.partition.topic_id).topic
            family.add_metric((position.group_id, topic, str(position.partition.partition)), lag)
        yield family


def group_figures(groups: Sequence[GroupStanding], now_ms: int) -> Iterable[Metric]:
    """Show how groups stand."""
    members = GaugeMetricFamily("semel_group_members", "Members.", labels=(*_GROUP, "state"))
    open_transactions = GaugeMetricFamily(
        "semel_group_open_transactions",
        "Transactions that hold offsets of the group.",
        labels=_GROUP,
    )
    oldest = GaugeMetricFamily(
        "semel_group_oldest_transaction_seconds",
        "Age of the oldest of them; 0: there is none.",
        labels=_GROUP,
    )
    for group in groups:
        members.add_metric((group.group_id, group.state.name.lower()), group.members)
        open_transactions.add_metric((group.group_id,), group.open_transactions)
        age_s = 0 if group.oldest_ms is None else max(0, now_ms - group.oldest_ms) / 1000
        oldest.add_metric((group.group_id,), age_s)
    yield members
    yield open_transactions
    yield oldest
