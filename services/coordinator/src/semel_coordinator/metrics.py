"""What Prometheus sees of a coordinator: transactions, their phases, markers, the cluster."""

import time
from collections.abc import Iterable, Sequence

from prometheus_client import Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from semel_coordinator.coordinator_machine import CoordinatorMachine
from semel_coordinator.transactions.machine import (
    DecidedTransaction,
    TransactionCompleted,
    TransactionKey,
)
from semel_coordinator.transactions.machine.gauges import Standing
from semel_coordinator.transactions.markers import MarkerSender
from semel_coordinator.transactions.markers.marker import Target
from semel_coordinator.transactions.markers.plan import LaneStanding
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock
from semel_runtime.metrics import Metrics
from semel_runtime.metrics.cluster import cluster_figures
from semel_runtime.metrics.requests import SECONDS
from semel_runtime.runner import harmless

_MINUTES = (*SECONDS, 30, 60, 120, 300, 900)


class CoordinatorMetrics:
    """Of one coordinator."""

    def __init__(
        self,
        metrics: Metrics,
        runner: Runs,
        machine: CoordinatorMachine,
        markers: MarkerSender,
        clock: Clock,
    ) -> None:
        """Listen to the journal from now on."""
        self._machine = machine
        self._markers = markers
        self._clock = clock
        self._phases = Phases(metrics, clock)
        runner.on_durable(harmless(self._phases.on_durable))
        metrics.look_up(self._figures)

    def _figures(self) -> Iterable[Metric]:
        now_ms = self._clock.now_ms()
        yield from transaction_figures(
            self._machine.transactions.queries.standing(now_ms=now_ms), now_ms
        )
        yield from marker_figures(self._markers.standing(), self._phases.oldest_s())
        yield from cluster_figures(self._machine.cluster)


class Phases:
    """How long transactions are open, and how long it takes until all participants know the end.

    What lies between, from EndTxn to its answer, is the duration of that request.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        """Start with none; earlier decisions count from now on."""
        self._clock = clock
        self._started = time.perf_counter()
        self._decided: dict[TransactionKey, float] = {}
        durations = Histogram(
            "semel_transaction_phase_duration_seconds",
            "open: from the first participant to the decision. fan_out: from the decision until all"
            " participants have it. The decision itself is the duration of EndTxn.",
            ("phase",),
            buckets=_MINUTES,
            registry=metrics.registry,
        )
        self._open = durations.labels("open")
        self._fan_out = durations.labels("fan_out")

    def on_durable(self, records: Sequence[object]) -> None:
        """Take what has become durable."""
        for record in records:
            if isinstance(record, DecidedTransaction):
                self._decided[record.key] = time.perf_counter()
                self._open.observe(max(0, self._clock.now_ms() - record.start_ms) / 1000)
            elif isinstance(record, TransactionCompleted):
                key = TransactionKey(record.producer_id, record.producer_epoch)
                self._fan_out.observe(time.perf_counter() - self._decided.pop(key, self._started))

    def oldest_s(self) -> float:
        """Return how long the oldest fan-out takes by now, in seconds; 0: there is none."""
        return time.perf_counter() - next(iter(self._decided.values())) if self._decided else 0.0


def transaction_figures(standing: Standing, now_ms: int) -> Iterable[Metric]:
    """Show how transactions stand."""
    counts = GaugeMetricFamily(
        "semel_transactions", "Transactions that are not complete, by state.", labels=("state",)
    )
    ages = GaugeMetricFamily(
        "semel_transaction_oldest_age_seconds",
        "Age of the oldest transaction of each state; 0: there is none.",
        labels=("state",),
    )
    for state, count in standing.counts.items():
        name = state.name.lower()
        began_ms = standing.oldest_ms.get(state)
        counts.add_metric((name,), count)
        ages.add_metric((name,), 0 if began_ms is None else max(0, now_ms - began_ms) / 1000)
    yield counts
    yield ages
    yield GaugeMetricFamily(
        "semel_transactions_late",
        "Ongoing transactions past their time-out: they should be aborted within seconds.",
        value=standing.late,
    )
    yield GaugeMetricFamily(
        "semel_joint_transactions_open",
        "Joint transactions that are open.",
        value=standing.open_joint_transactions,
    )
    yield GaugeMetricFamily(
        "semel_transactional_ids",
        "Transactional ids that are known.",
        value=standing.transactional_ids,
    )


def marker_figures(
    lanes: Iterable[tuple[Target, LaneStanding]], oldest_s: float
) -> Iterable[Metric]:
    """Show what participants are still to be told."""
    names = ("role", "instance_id")
    pending = GaugeMetricFamily(
        "semel_markers_pending",
        "Markers that an instance has not acknowledged; role none: their partition has no leader.",
        labels=names,
    )
    in_flight = GaugeMetricFamily(
        "semel_markers_in_flight", "Those of them that are on their way.", labels=names
    )
    failures = GaugeMetricFamily(
        "semel_markers_failures", "How often in a row an instance was not reached.", labels=names
    )
    for target, lane in lanes:
        nowhere = target.instance_id < 0
        labels = ("none", "") if nowhere else (target.role.name.lower(), str(target.instance_id))
        pending.add_metric(labels, lane.pending)
        in_flight.add_metric(labels, lane.in_flight)
        failures.add_metric(labels, lane.failures)
    yield pending
    yield in_flight
    yield failures
    yield GaugeMetricFamily(
        "semel_markers_oldest_age_seconds",
        "For how long the oldest decided transaction has waited for its markers; 0: none waits.",
        value=oldest_s,
    )
