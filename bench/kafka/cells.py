"""The measurements, as data: the cells, their contenders, and their goals."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from bench.clients.settings import ClientName
from bench.workloads import (
    BULK_COLUMNS,
    BULK_KIBIBYTES,
    BULK_RECORDS,
    CONSUME,
    VISIBLE,
    Call,
    Kind,
    Workload,
    transactions,
    transform,
)


class System(StrEnum):
    """What runs, one node of each; all of them all the time, but only one has something to do."""

    SEMEL = "semel"
    KAFKA = "kafka"
    """As it is set by default: it acknowledges before anything is on disk."""
    KAFKA_FLUSH = "kafka-flush"
    """With log.flush.interval.messages=1: like Semel, it acknowledges after fsync."""


class Contestant(StrEnum):
    """A client of a system: one column of the table."""

    SEMEL = "semel"
    JAVA = "java"
    CONFLUENT = "confluent"
    AIOKAFKA = "aiokafka"
    JAVA_FLUSH = "java-flush"

    @property
    def client(self) -> ClientName:
        """Which program it runs."""
        return ClientName.JAVA if self is Contestant.JAVA_FLUSH else ClientName(self)

    @property
    def system(self) -> System:
        """What it works on."""
        match self:
            case Contestant.SEMEL:
                return System.SEMEL
            case Contestant.JAVA_FLUSH:
                return System.KAFKA_FLUSH
            case _:
                return System.KAFKA


class Unit(StrEnum):
    """What a figure counts; each is computed from a sample."""

    TRANSACTIONS = "transactions/s"
    RECORDS = "records/s"
    MEGABYTES = "MB/s"
    P50 = "p50 ms"
    P99 = "p99 ms"

    @property
    def less_is_better(self) -> bool:
        """Whether the lowest wins."""
        return self in {Unit.P50, Unit.P99}


ALL = tuple(Contestant)
KAFKA = (Contestant.JAVA, Contestant.CONFLUENT, Contestant.AIOKAFKA)
"""Whose best Semel is compared with; the one with fsync is shown beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The goal of one figure."""

    unit: Unit
    title: str
    times: float
    """How many times better than the best rival."""
    rivals: Sequence[Contestant] = KAFKA


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A workload, which gives one or more lines of the table."""

    name: str
    workload: Workload
    lines: Sequence[Goal]
    contestants: Sequence[Contestant] = ALL

    @property
    def reads(self) -> bool:
        """Whether it reads a topic that was filled before."""
        return self.workload.kind in {Kind.TRANSFORM, Kind.CONSUME}


SOURCE_RECORDS = 2_000_000
"""What there is to read, of 100 bytes each."""
FILL = BULK_COLUMNS
_JAVA = (Contestant.JAVA,)


def _rate(producers: int, times: float) -> Goal:
    plural = "" if producers == 1 else "s"
    title = f"transactions of 4 records, 100 B, to 4 partitions, {producers} producer{plural}"
    return Goal(unit=Unit.TRANSACTIONS, title=title, times=times)


def _transform(records: int, unit: Unit, times: float) -> Cell:
    plural = "" if records == 1 else "s"
    title = f"consume-transform-produce, {records:,} record{plural} a transaction"
    return Cell(
        name=f"transform-{records}",
        workload=transform(records),
        lines=(Goal(unit=unit, title=title, times=times),),
    )


WARM_UP = transactions(8)


CELLS: Sequence[Cell] = (
    Cell(
        name="transactions-1",
        workload=transactions(1),
        lines=(
            _rate(1, 1.5),
            Goal(unit=Unit.P50, title="… commit, its 4 sends included", times=0.45, rivals=_JAVA),
            Goal(unit=Unit.P99, title="… commit, its 4 sends included", times=6, rivals=_JAVA),
        ),
    ),
    Cell(name="transactions-8", workload=transactions(8), lines=(_rate(8, 1.7),)),
    Cell(name="transactions-64", workload=transactions(64), lines=(_rate(64, 1.5),)),
    Cell(
        name="visible",
        workload=VISIBLE,
        lines=(
            Goal(unit=Unit.P50, title="send → read_committed poll", times=0.4),
            Goal(unit=Unit.P99, title="send → read_committed poll", times=1),
        ),
    ),
    _transform(1, Unit.TRANSACTIONS, 6),
    _transform(100, Unit.RECORDS, 4),
    _transform(5_000, Unit.RECORDS, 1.1),
    Cell(
        name="transform-columns",
        workload=transform(5_000, Call.COLUMNS),
        lines=(
            Goal(
                unit=Unit.RECORDS,
                title="… 5,000 records a transaction, column calls",
                times=2,
            ),
        ),
        contestants=(Contestant.SEMEL, Contestant.JAVA),
    ),
    Cell(
        name="bulk-columns",
        workload=BULK_COLUMNS,
        lines=(Goal(unit=Unit.RECORDS, title="bulk in transactions, 100 B, column call", times=2),),
    ),
    Cell(
        # Beside the one client of Kafka that has the same kind of call.
        name="bulk-records",
        workload=BULK_RECORDS,
        lines=(Goal(unit=Unit.RECORDS, title="… record by record, asyncio", times=3),),
        contestants=(Contestant.SEMEL, Contestant.AIOKAFKA),
    ),
    Cell(
        name="bulk-1k",
        workload=BULK_KIBIBYTES,
        lines=(
            Goal(unit=Unit.MEGABYTES, title="bulk in transactions, 1 KiB, column call", times=1.3),
        ),
    ),
    Cell(
        name="consume",
        workload=CONSUME,
        lines=(
            Goal(unit=Unit.RECORDS, title="read_committed consume, 100 B, column call", times=1.3),
        ),
        contestants=(Contestant.SEMEL, *KAFKA),
    ),
)


class UnknownCellError(Exception):
    """There is no cell of that name."""


def chosen_cells(names: Sequence[str]) -> Sequence[Cell]:
    """Return the cells of these names, or all if there is none; raises UnknownCellError."""
    known = {cell.name: cell for cell in CELLS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UnknownCellError(f"unknown cell {', '.join(unknown)}; known: {', '.join(known)}")
    return [cell for cell in CELLS if cell.name in names] if names else CELLS
