"""Where a transaction stands, and the ways between: the tables that replay asserts.

Every epoch of a producer is a transaction of its own (protocol.md, section 3). It begins EMPTY,
which is not stored: the current epoch of a producer is EMPTY until its first participant. A
decision ends it for the producer and begins the next one. COMPLETE is not stored either: the
outcome alone of a complete transaction is remembered.
"""

from enum import StrEnum


class TransactionState(StrEnum):
    """Kafka's states, by Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARED = "Prepared"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


class Outcome(StrEnum):
    """How a transaction ended, once and for all."""

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"


class AbortReason(StrEnum):
    """Who aborted a transaction, or what."""

    CLIENT = "CLIENT"
    """Its own producer instance: by EndTxn, or by another InitProducerId."""
    TIMED_OUT = "TIMED_OUT"
    FENCED = "FENCED"
    """A new producer instance took over its transactional id."""
    OPERATOR = "OPERATOR"


REASON_NUMBERS: dict[AbortReason, int] = {
    AbortReason.CLIENT: 1,
    AbortReason.TIMED_OUT: 2,
    AbortReason.FENCED: 3,
    AbortReason.OPERATOR: 4,
}
"""What stands for a reason among those of a producer's last epochs: four bits, never 0."""


LEGAL_PREDECESSORS: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: frozenset(),
    TransactionState.ONGOING: frozenset({TransactionState.EMPTY, TransactionState.ONGOING}),
    # From EMPTY: participants may be heard of first when the transaction is prepared or ended.
    TransactionState.PREPARED: frozenset({TransactionState.EMPTY, TransactionState.ONGOING}),
    TransactionState.PREPARE_COMMIT: frozenset(
        {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARED}
    ),
    TransactionState.PREPARE_ABORT: frozenset(
        {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARED}
    ),
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}
"""From which states each state may be entered. Kafka: ``TransactionState.java``."""

COMPLETED: dict[TransactionState, TransactionState] = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}
"""What a decided transaction becomes when its last marker is acknowledged."""
