"""What a run of the harness has found: a value that is written as JSON, and read again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from bench.kafka.cells import Contestant, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What the machine itself can do."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReport:
    """One line of the table."""

    unit: Unit
    values: Mapping[Contestant, Sequence[float]]
    """One for each run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one contestant's processes took in a cell, by the name of the process."""

    processor_ms: Mapping[str, float]
    """For one transaction, on the clock; the median of the runs."""
    peak_mib: Mapping[str, float]
    """Resident, at most, from the cell's warm-up to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReport:
    """One cell."""

    name: str
    lines: Sequence[LineReport]
    """In the order of the cell's own lines."""
    usage: Mapping[Contestant, Usage]
    records_per_transaction: Mapping[Contestant, float]
    """As it turned out, on average."""
    distributions: Mapping[Contestant, Sequence[float]]
    """Latencies in ms, at ``figures.SHARES``; empty where the workload has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything."""

    taken: str
    """The date, UTC."""
    runs: int
    machine: str
    versions: Mapping[str, str]
    limits: Sequence[Limit]
    idle_mib: Mapping[str, float]
    """Resident memory of the services before any load."""
    cells: Sequence[CellReport]
    failures: Sequence[str] = field(default=())
    """What went wrong; their runs are missing."""


_ADAPTER = TypeAdapter(Report)


def write_report(report: Report, path: Path) -> None:
    """Write it as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_ADAPTER.dump_json(report, indent=2) + b"\n")


def read_report(path: Path) -> Report:
    """Return the written records."""
    return _ADAPTER.validate_json(path.read_bytes())
