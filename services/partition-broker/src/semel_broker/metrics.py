"""A broker's metrics for Prometheus: partitions, holders of stable offsets, and reads."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from semel_broker.machine import BrokerMachine
from semel_broker.machine.gauges import PartitionStanding
from semel_broker.rpc.fetch import Fetcher
from semel_broker.rpc.fetch_waiters import Waiters
from semel_broker.storage.damage import DamageReports
from semel_runtime.clock import Clock
from semel_runtime.metrics import Metrics
from semel_runtime.metrics.cluster import cluster_figures

_PARTITION = ("topic", "partition")
_OF_A_PARTITION: tuple[tuple[str, str, Callable[[PartitionStanding], float]], ...] = (
    (
        "semel_partition_log_start_offset",
        "Below it, nothing is served any more.",
        lambda each: each.log_start_offset,
    ),
    (
        "semel_partition_log_end_offset",
        "Offset of the next record.",
        lambda each: each.log_end_offset,
    ),
    (
        "semel_partition_last_stable_offset",
        "Below it, every transaction has ended: so far do committed reads see.",
        lambda each: each.last_stable_offset,
    ),
    (
        "semel_partition_lso_lag",
        "Offsets between the last stable offset and the end.",
        lambda each: each.log_end_offset - each.last_stable_offset,
    ),
    (
        "semel_partition_size_bytes",
        "About what the partition takes on the disk.",
        lambda each: each.size_bytes,
    ),
    ("semel_partition_producers", "Producer ids remembered.", lambda each: each.producers),
    (
        "semel_partition_open_transactions",
        "Transactions without an outcome.",
        lambda each: each.open_transactions,
    ),
)


class BrokerMetrics:
    """Of one broker."""

    def __init__(
        self,
        metrics: Metrics,
        machine: BrokerMachine,
        fetcher: Fetcher,
        waiters: Waiters,
        reports: DamageReports,
        clock: Clock,
    ) -> None:
        """Look nothing up yet."""
        self._machine = machine
        self._fetcher = fetcher
        self._waiters = waiters
        self._reports = reports
        self._clock = clock
        metrics.look_up(self._figures)

    def _figures(self) -> Iterable[Metric]:
        yield from cluster_figures(self._machine.cluster)
        yield from partition_figures(
            tuple(self._machine.descriptions.standing()), self._clock.now_ms()
        )
        yield GaugeMetricFamily(
            "semel_fetches_waiting",
            "Fetches that wait for records, once for each partition.",
            value=len(self._waiters),
        )
        yield GaugeMetricFamily(
            "semel_fetch_held_bytes",
            "Bytes that reads hold until their answers are written.",
            value=self._fetcher.held_bytes,
        )
        yield GaugeMetricFamily(
            "semel_damaged_places",
            "Places in the journal that were found damaged since the start. Look at once: the log"
            " names each.",
            value=self._reports.count,
        )


def partition_figures(partitions: Sequence[PartitionStanding], now_ms: int) -> Iterable[Metric]:
    """Show the partitions that are led here."""
    for name, meaning, value in _OF_A_PARTITION:
        family = GaugeMetricFamily(name, meaning, labels=_PARTITION)
        for partition in partitions:
            family.add_metric((partition.topic, str(partition.partition)), value(partition))
        yield family
    held = GaugeMetricFamily(
        "semel_partition_lso_held_seconds",
        "For how long the last stable offset has been held, and by which producer. Only of"
        " partitions where a transaction is open.",
        labels=(*_PARTITION, "producer_id", "producer_epoch"),
    )
    for partition in partitions:
        if partition.holder is not None:
            producer = (str(partition.holder.producer_id), str(partition.holder.producer_epoch))
            age_s = max(0, now_ms - partition.holder.start_ms) / 1000
            held.add_metric((partition.topic, str(partition.partition), *producer), age_s)
    yield held
