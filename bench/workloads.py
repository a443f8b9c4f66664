"""What is measured, as data: the same workload is run by a client of every system.

A workload names the work; a task names the place and the duration. A client answers with a sample,
from which every figure is computed in one place, for all clients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

PARTITIONS = 4
RECORD_SIZE_BYTES = 100


class Kind(StrEnum):
    """What a client is told to do."""

    TRANSACTIONS = "transactions"
    """Each producer: begin, send one record to each partition in turn, commit; again and again.
    Latency: of the commit, which includes the flush and the acknowledgement of all records.
    """
    VISIBLE = "visible"
    """One producer sends records in a transaction and commits it, while a read_committed consumer
    polls. Latency: from before the first send until poll has returned the last record."""
    TRANSFORM = "transform"
    """Consume, copy each record to another topic, and commit that with the group's offsets."""
    BULK = "bulk"
    """One producer writes large transactions."""
    CONSUME = "consume"
    """One read_committed consumer reads a topic from its beginning."""


class Call(StrEnum):
    """How a client hands over what it sends, and takes what it polls."""

    RECORDS = "records"
    """One call for each record."""
    COLUMNS = "columns"
    """As many records in a call as the client has a call for; else as RECORDS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is done."""

    kind: Kind
    records_per_transaction: int
    """At most, where a consumer decides how many there are."""
    record_size_bytes: int = RECORD_SIZE_BYTES
    producers: int = 1
    """Of one process, at the same time; each with a transactional id of its own."""
    partitions: int = PARTITIONS
    """Of each topic."""
    call: Call = Call.RECORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A workload with its place and its limits; whichever is reached first ends it."""

    workload: Workload
    name: str
    """Of this run and no other: for transactional ids, groups, and the topic that it creates."""
    source: str = ""
    """The topic to read, where the workload reads one that was filled before."""
    records_max: int
    """How many records to write, or to read of the source."""
    warm_up_s: float
    """How long to work before the clock starts. A transaction that has begun is finished."""
    duration_s: float
    """How long to work on the clock. A transaction that has begun is finished, and counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a client has done on the clock."""

    elapsed_s: float
    transactions: int
    records: int
    latencies_ms: tuple[float, ...] = ()
    """What the kind of workload says; else empty."""


Began = Callable[[], None]
"""Called when the clock starts."""


def transactions(producers: int) -> Workload:
    """Return small transactions: a record to each of four partitions."""
    return Workload(kind=Kind.TRANSACTIONS, records_per_transaction=PARTITIONS, producers=producers)


def transform(records: int, call: Call = Call.RECORDS) -> Workload:
    """Return consume-transform-produce with so many records in a transaction."""
    return Workload(kind=Kind.TRANSFORM, records_per_transaction=records, call=call)


VISIBLE = Workload(kind=Kind.VISIBLE, records_per_transaction=1)
BULK_COLUMNS = Workload(kind=Kind.BULK, records_per_transaction=100_000, call=Call.COLUMNS)
BULK_RECORDS = Workload(kind=Kind.BULK, records_per_transaction=10_000)
BULK_KIBIBYTES = Workload(
    kind=Kind.BULK, records_per_transaction=20_000, record_size_bytes=1_024, call=Call.COLUMNS
)
CONSUME = Workload(
    kind=Kind.CONSUME,
    records_per_transaction=BULK_COLUMNS.records_per_transaction,
    call=Call.COLUMNS,
)
