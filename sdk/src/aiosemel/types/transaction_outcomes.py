"""Outcomes of transactions, as values, and the producer's next step."""

from dataclasses import dataclass
from enum import StrEnum


class KnownOutcome(StrEnum):
    """The outcome of a transaction, as its coordinator knows it."""

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    ONGOING = "ONGOING"
    """Not decided: it may still do either."""
    PREPARED = "PREPARED"
    """Its owner decides, whenever it comes back; see ``TransactionalProducer.prepare``."""
    TOO_OLD_TO_KNOW = "TOO_OLD_TO_KNOW"
    """Its producer has ended 256 newer transactions, or its transactional id has expired."""


class AbortReason(StrEnum):
    """The cause of an abort."""

    CLIENT = "CLIENT"
    """Its own producer."""
    TIMED_OUT = "TIMED_OUT"
    """It was open for longer than ``transaction_timeout_ms``."""
    FENCED = "FENCED"
    """A new producer took over its transactional id."""
    OPERATOR = "OPERATOR"

    @classmethod
    def named(cls, name: str | None) -> "AbortReason | None":
        """Return the reason that a server names; None for none, and for one that is not known."""
        return cls(name) if name in set(cls) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOutcomeDescription:
    """The outcome of one transaction, (``producer_id``, ``producer_epoch``)."""

    transactional_id: str
    """Empty: the producer has none, or has it no longer."""
    producer_id: int
    producer_epoch: int
    outcome: KnownOutcome
    abort_reason: AbortReason | None
    """None: it was not aborted, or the reason is not known any more."""
    is_complete: bool
    """Whether all markers are written, so that readers see the outcome. A partition that was
    written to, and neither registered nor named, still has to ask."""
    current_epoch: int | None
    """Of the producer's current transaction; None: not known any more."""
    time_left_ms: int | None
    """Of an ongoing one: until it times out, in milliseconds."""


class NextStep(StrEnum):
    """The next step of a producer that got no answer to its commit, once the outcome is known."""

    BEGIN = "BEGIN"
    """It goes on: begin the next transaction, unless you have."""
    ABORT = "ABORT"
    """It has not committed: call ``abort``, begin again, and do the work again."""
    NEW_PRODUCER = "NEW_PRODUCER"
    """This producer is done: close it, and make another for the next transaction; after ABORTED, do
    the work of this transaction again there.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The outcome of a transaction after a commit without an answer."""

    outcome: KnownOutcome
    """Never ONGOING or PREPARED."""
    abort_reason: AbortReason | None
    next_step: NextStep
