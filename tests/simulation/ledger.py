"""What the clients of a simulation did, as they know it; `verdict` compares it with the logs."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

TopicPartition = tuple[str, int]


class Outcome(StrEnum):
    """What a client knows of a transaction."""

    OPEN = "OPEN"
    """No commit was sent: whatever happens, it never commits."""
    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    UNKNOWN = "UNKNOWN"
    """A commit was sent, and nobody said what became of it."""


@dataclass(slots=True)
class Txn:
    """One transaction of a workload, or one record outside of any."""

    number: int
    process: str
    outcome: Outcome = Outcome.OPEN
    values: list[str] = field(default_factory=list)
    sent_to: list[TopicPartition] = field(default_factory=list)


class Read(NamedTuple):
    """One record as a reader got it."""

    offset: int
    value: str


@dataclass(slots=True)
class Ledger:
    """Everything that was sent, answered and read."""

    txns: list[Txn] = field(default_factory=list)
    writer: dict[str, Txn] = field(default_factory=dict)
    """By value."""
    stored: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """Topic, partition and offset of each acknowledged value."""
    plain: dict[str, bool] = field(default_factory=dict)
    """Values sent outside of transactions: whether they were acknowledged."""
    order: dict[tuple[str, TopicPartition], list[str]] = field(default_factory=dict)
    """Acknowledged plain values of each producer to each partition, as they were sent."""
    reads: dict[tuple[str, TopicPartition], list[Read]] = field(default_factory=dict)
    """By reader, from the start of the log on."""
    attempts: int = 0
    """Transactions that a transformation began."""

    def begin(self, process: str) -> Txn:
        """Begin a transaction."""
        txn = Txn(len(self.txns), process)
        self.txns.append(txn)
        return txn

    def value_of(self, txn: Txn, to: TopicPartition) -> str:
        """Return a new value to send in a transaction."""
        value = f"{txn.process}.{txn.number}.{len(txn.values)}"
        txn.values.append(value)
        txn.sent_to.append(to)
        self.writer[value] = txn
        return value
