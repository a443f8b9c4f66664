"""The states of a transactional producer, and every legal step between them, as data.

``transaction_manager`` says what the steps mean. The words are Kafka's, whose state of a prepared
transaction (KIP-939) is not here yet.
"""

from enum import Enum, StrEnum, auto


class State(StrEnum):
    """Where a transactional producer stands; Kafka's names."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    COMMITTING_TRANSACTION = "COMMITTING_TRANSACTION"
    ABORTING_TRANSACTION = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


class Call(StrEnum):
    """What the application asks for, by the name of the method."""

    INIT_TRANSACTIONS = "init_transactions"
    BEGIN_TRANSACTION = "begin_transaction"
    SEND = "send"
    SEND_OFFSETS = "send_offsets"
    COMMIT = "commit"
    ABORT = "abort"


class TransactionOutcome(StrEnum):
    """What became of a transaction, as far as its producer knows."""

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    """It is not committed, and never will be."""
    UNKNOWN = "UNKNOWN"
    """A commit was sent, and not answered."""


class Event(Enum):
    """What the shell reports."""

    INITIALIZED = auto()
    COMMIT_WITHDRAWN = auto()
    """Before EndTxn went out."""
    ENDED = auto()
    ABORTABLE = auto()
    FATAL = auto()


_S = State

TRANSITIONS: dict[State, dict[Call | Event, State]] = {
    _S.UNINITIALIZED: {
        Call.INIT_TRANSACTIONS: _S.INITIALIZING,
    },
    _S.INITIALIZING: {
        Call.INIT_TRANSACTIONS: _S.INITIALIZING,
        Event.INITIALIZED: _S.READY,
        Event.FATAL: _S.FATAL_ERROR,
    },
    _S.READY: {
        Call.BEGIN_TRANSACTION: _S.IN_TRANSACTION,
    },
    _S.IN_TRANSACTION: {
        Call.SEND: _S.IN_TRANSACTION,
        Call.SEND_OFFSETS: _S.IN_TRANSACTION,
        Call.COMMIT: _S.COMMITTING_TRANSACTION,
        Call.ABORT: _S.ABORTING_TRANSACTION,
        Event.ABORTABLE: _S.ABORTABLE_ERROR,
        Event.FATAL: _S.FATAL_ERROR,
    },
    _S.COMMITTING_TRANSACTION: {
        Call.COMMIT: _S.COMMITTING_TRANSACTION,
        Event.COMMIT_WITHDRAWN: _S.IN_TRANSACTION,
        Event.ENDED: _S.READY,
        Event.ABORTABLE: _S.ABORTABLE_ERROR,
        Event.FATAL: _S.FATAL_ERROR,
    },
    _S.ABORTING_TRANSACTION: {
        Call.ABORT: _S.ABORTING_TRANSACTION,
        Event.ENDED: _S.READY,
        Event.FATAL: _S.FATAL_ERROR,
    },
    _S.ABORTABLE_ERROR: {
        Call.ABORT: _S.ABORTING_TRANSACTION,
    },
    _S.FATAL_ERROR: {},
}
