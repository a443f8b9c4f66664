"""The names in a history: partitions, writers, joint transactions, and closed sets of words."""

from enum import StrEnum
from typing import NamedTuple


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Writer(NamedTuple):
    """A producer in one epoch: also the name of its transaction."""

    producer_id: int
    producer_epoch: int


class Joint(NamedTuple):
    """One run's attempt at a version of a joint transaction."""

    transactional_id: str
    txn_version: int
    run: str


class Source(NamedTuple):
    """The record that a derived record was made of, and the group that consumed it."""

    group: str
    partition: Partition
    offset: int


class Outcome(StrEnum):
    """How an operation came back."""

    OK = "OK"
    FAILED = "FAILED"
    """It had no effect, and never will. For a commit: the transaction is aborted."""
    UNKNOWN = "UNKNOWN"


class Isolation(StrEnum):
    """The records that a reader sees."""

    READ_COMMITTED = "READ_COMMITTED"
    READ_UNCOMMITTED = "READ_UNCOMMITTED"


class TransactionState(StrEnum):
    """The state of a transaction, as its coordinator reports it."""

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    ONGOING = "ONGOING"
    PREPARED = "PREPARED"
    TOO_OLD_TO_KNOW = "TOO_OLD_TO_KNOW"


class AbortReason(StrEnum):
    """Why a transaction was aborted."""

    CLIENT = "CLIENT"
    TIMED_OUT = "TIMED_OUT"
    FENCED = "FENCED"
    OPERATOR = "OPERATOR"
    NEVER_GIVEN = "NEVER_GIVEN"
