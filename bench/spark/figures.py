"""The measurements, as data: the workloads, the sizes, and the goals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median


class System(StrEnum):
    """What is between the pipelines."""

    SEMEL = "semel"
    KAFKA = "kafka"
    NOTHING = "nothing"
    """A source and a sink in Python that do nothing: the rest is Spark's."""


class Workload(StrEnum):
    """What a driver is told to do."""

    WRITE = "batch write"
    READ = "batch read"
    STREAM = "topic → topic"
    SMALL_BATCH = "micro-batch of one record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    workload: Workload
    size_bytes: int
    records: int
    goal: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.workload}, {self.size_bytes} B"


PARTITIONS = 2
_SMALL_BATCHES = 25
_RECORDS: Mapping[int, int] = {100: 1_000_000, 300: 600_000, 1024: 250_000}
"""By the size of their values: enough for some seconds of work, and no more than memory holds."""
SIZES = tuple(_RECORDS)
_STREAM_GOALS: Mapping[int, str] = {100: "≥ 2", 300: "≥ 1.7", 1024: "≥ 1.5"}


def rows(sizes: Sequence[int], scale: float) -> Sequence[Row]:
    """Return the lines of the table: each size is written, read, and then copied."""
    large = [
        Row(
            workload=workload,
            size_bytes=size,
            records=max(PARTITIONS, int(_RECORDS[size] * scale)),
            goal=goal,
        )
        for size in sizes
        for workload, goal in (
            (Workload.WRITE, ""),
            (Workload.READ, "≥ 2"),
            (Workload.STREAM, _STREAM_GOALS[size]),
        )
    ]
    small = Row(
        workload=Workload.SMALL_BATCH,
        size_bytes=100,
        records=_SMALL_BATCHES * PARTITIONS,
        goal="≤ 250 ms",
    )
    return [*large, small]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row with its measurements."""

    row: Row
    values: Mapping[System, Sequence[float]]

    @property
    def unit(self) -> str:
        """Of its numbers."""
        return "ms" if self.row.workload is Workload.SMALL_BATCH else "rows/s"

    def median(self, system: System) -> float | None:
        """Return the middle of the repetitions; None where nothing was measured."""
        return median(self.values[system]) if self.values.get(system) else None

    def ratios(self, system: System = System.SEMEL) -> Sequence[float]:
        """How many times better than Kafka a system is, in each repetition."""
        pairs = zip(self.values.get(system, ()), self.values.get(System.KAFKA, ()), strict=False)
        if self.row.workload is Workload.SMALL_BATCH:  # The less, the better.
            return [kafka / other for other, kafka in pairs]
        return [other / kafka for other, kafka in pairs]
