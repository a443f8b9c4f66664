"""The start and stop of the clock, and the count between: one rule for all clients.

The clock starts when the first transaction after the warm-up has ended, and stops when the last one
has ended before the time is over; it goes on until there are some. So nothing is counted by halves,
however long a transaction is, and however many run at the same time. The Java client has the same
rule (`Meter.java`).
"""

import time
from collections.abc import Callable

from bench.workloads import Began, Sample, Task

TRANSACTIONS_MIN = 3
"""A run is longer than it should be until so many have ended on the clock."""


class NothingMeasuredError(Exception):
    """There was no more to read before a second transaction had ended."""


class Meter:
    """Counts what one client does in one run. Not for several threads at once."""

    def __init__(
        self, task: Task, began: Began, clock_s: Callable[[], float] = time.perf_counter
    ) -> None:
        self._task = task
        self._began = began
        self._clock_s = clock_s
        self._warm_at_s = clock_s() + task.warm_up_s
        self._started_s: float | None = None
        self._ended_s = 0.0
        self._all_records = 0
        self._transactions = 0
        self._records = 0
        self._latencies_ms: list[float] = []

    @property
    def over(self) -> bool:
        """Whether no further transaction is to begin."""
        if self._all_records >= self._task.records_max:
            return True
        return self._started_s is not None and self._enough(self._clock_s())

    def ended(self, records: int, latency_ms: float | None = None) -> None:
        """Count a transaction that has ended, or of a consumer, a poll."""
        now_s = self._clock_s()
        self._all_records += records
        if self._started_s is None:
            if now_s >= self._warm_at_s:
                self._started_s = now_s
                self._began()
            return
        if self._enough(now_s):
            return
        self._ended_s = now_s
        self._transactions += 1
        self._records += records
        if latency_ms is not None:
            self._latencies_ms.append(latency_ms)

    def sample(self) -> Sample:
        """Return what was counted; raises NothingMeasuredError."""
        if self._started_s is None or not self._transactions:
            raise NothingMeasuredError(
                f"{self._task.name}: {self._all_records} records are too few to measure"
            )
        return Sample(
            elapsed_s=self._ended_s - self._started_s,
            transactions=self._transactions,
            records=self._records,
            latencies_ms=tuple(self._latencies_ms),
        )

    def _enough(self, now_s: float) -> bool:
        assert self._started_s is not None
        until_s = self._started_s + self._task.duration_s
        return now_s >= until_s and self._transactions >= TRANSACTIONS_MIN
