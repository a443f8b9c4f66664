"""The states of a transactional producer, and every legal step between them, as data.

``transaction_manager`` explains the steps. The words are Kafka's, except for preparing: Kafka's
producer stays PREPARED until it completes (KIP-939), and this one may begin its next transaction.
"""

from enum import Enum, StrEnum, auto


class State(StrEnum):
    """Where a transactional producer stands; Kafka's names."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    PREPARING_TRANSACTION = "PREPARING_TRANSACTION"
    COMMITTING_TRANSACTION = "COMMITTING_TRANSACTION"
    ABORTING_TRANSACTION = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


class Call(StrEnum):
    """The calls of the application, by the names of the methods."""

    INIT_TRANSACTIONS = "init_transactions"
    BEGIN_TRANSACTION = "begin_transaction"
    SEND = "send"
    SEND_OFFSETS = "send_offsets"
    COMMIT = "commit"
    ABORT = "abort"
    PREPARE = "prepare"
    COMPLETE_PREPARED = "complete_prepared"


class TransactionOutcome(StrEnum):
    """The outcome of a transaction, as far as its producer knows."""

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    """It is not committed, and never will be."""
    PREPARED = "PREPARED"
    """It can be committed or aborted, and has left this producer's hands."""
    UNKNOWN = "UNKNOWN"
    """A commit or a prepare was sent, and not answered."""


class Event(Enum):
    """The events that the shell reports."""

    INITIALIZED = auto()
    OUTDATED = auto()
    """The transactional id may be forgotten soon, or the producer token is refused."""
    WITHDRAWN = auto()
    """A commit or a prepare, before its request went out."""
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
        Call.COMPLETE_PREPARED: _S.READY,
        Call.BEGIN_TRANSACTION: _S.IN_TRANSACTION,
        Event.OUTDATED: _S.UNINITIALIZED,
    },
    _S.IN_TRANSACTION: {
        Call.COMPLETE_PREPARED: _S.IN_TRANSACTION,
        Call.SEND: _S.IN_TRANSACTION,
        Call.SEND_OFFSETS: _S.IN_TRANSACTION,
        Call.PREPARE: _S.PREPARING_TRANSACTION,
        Call.COMMIT: _S.COMMITTING_TRANSACTION,
        Call.ABORT: _S.ABORTING_TRANSACTION,
        Event.ABORTABLE: _S.ABORTABLE_ERROR,
        Event.FATAL: _S.FATAL_ERROR,
    },
    _S.PREPARING_TRANSACTION: {
        Call.COMPLETE_PREPARED: _S.PREPARING_TRANSACTION,
        Call.PREPARE: _S.PREPARING_TRANSACTION,
        Call.ABORT: _S.ABORTING_TRANSACTION,
        Event.WITHDRAWN: _S.IN_TRANSACTION,
        Event.ENDED: _S.READY,
        Event.ABORTABLE: _S.ABORTABLE_ERROR,
        Event.FATAL: _S.FATAL_ERROR,
    },
    _S.COMMITTING_TRANSACTION: {
        Call.COMPLETE_PREPARED: _S.COMMITTING_TRANSACTION,
        Call.COMMIT: _S.COMMITTING_TRANSACTION,
        Event.WITHDRAWN: _S.IN_TRANSACTION,
        Event.ENDED: _S.READY,
        Event.ABORTABLE: _S.ABORTABLE_ERROR,
        Event.FATAL: _S.FATAL_ERROR,
    },
    _S.ABORTING_TRANSACTION: {
        Call.COMPLETE_PREPARED: _S.ABORTING_TRANSACTION,
        Call.ABORT: _S.ABORTING_TRANSACTION,
        Event.ENDED: _S.READY,
        Event.FATAL: _S.FATAL_ERROR,
    },
    _S.ABORTABLE_ERROR: {
        Call.COMPLETE_PREPARED: _S.ABORTABLE_ERROR,
        Call.ABORT: _S.ABORTING_TRANSACTION,
    },
    _S.FATAL_ERROR: {},
}
