"""What the journal does, and what waits for it."""

from collections.abc import Iterable
from typing import TypeVar

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from semel_runtime.journal.contract import Journal
from semel_runtime.metrics.requests import SECONDS
from semel_runtime.runner import CommitFigures, Runner

R = TypeVar("R")

_COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
_BYTES = tuple(4**power for power in range(4, 13))


class JournalMetrics:
    """Of the journal of one process."""

    def __init__(self, registry: CollectorRegistry, runner: Runner[R], journal: Journal) -> None:
        """Listen from now on."""
        self._stats = runner.stats
        self._journal = journal
        self._seconds = Histogram(
            "semel_journal_commit_duration_seconds",
            "One group commit, until it is on disk: the way to the journal's thread and back, the"
            " write, and its fsync.",
            buckets=SECONDS,
            registry=registry,
        )
        self._write_seconds = Histogram(
            "semel_journal_write_duration_seconds",
            "The part of a group commit that is the write and its fsync, in the journal's thread.",
            buckets=SECONDS,
            registry=registry,
        )
        self._records = Histogram(
            "semel_journal_commit_records",
            "Records that became durable together.",
            buckets=_COUNTS,
            registry=registry,
        )
        self._bytes = Histogram(
            "semel_journal_commit_bytes",
            "Bytes of records and batches that became durable together.",
            buckets=_BYTES,
            registry=registry,
        )
        runner.on_commit(self._committed)

    def _committed(self, commit: CommitFigures) -> None:
        self._seconds.observe(commit.seconds)
        self._write_seconds.observe(commit.write_seconds)
        self._records.observe(commit.records)
        self._bytes.observe(commit.size_bytes)

    def figures(self) -> Iterable[Metric]:
        """Look up what waits, and how much room is left."""
        stats, free_bytes = self._stats(), self._journal.free_bytes()
        yield GaugeMetricFamily(
            "semel_journal_pending_records",
            "Records that wait for the disk.",
            value=stats.pending_records,
        )
        yield GaugeMetricFamily(
            "semel_journal_pending_bytes",
            "Bytes that wait for the disk.",
            value=stats.pending_bytes,
        )
        yield GaugeMetricFamily(
            "semel_journal_next_offset", "Where the next record goes.", value=stats.next_offset
        )
        yield CounterMetricFamily(
            "semel_journal_snapshots", "Snapshots taken since the start.", value=stats.snapshots
        )
        if free_bytes is not None:
            yield GaugeMetricFamily(
                "semel_disk_free_bytes", "Free on the journal's disk.", value=free_bytes
            )
        yield GaugeMetricFamily(
            "semel_disk_has_room",
            "1 as long as new records are taken; 0: the disk is nearly full.",
            value=self._journal.shortage() is None,
        )
