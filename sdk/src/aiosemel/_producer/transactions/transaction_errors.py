"""The errors that a transactional producer raises for its state and for the fate of a commit."""

from collections.abc import Iterable

from aiosemel._producer.transactions.transaction_states import Call, State
from aiosemel.errors import (
    ApplicationRecoverableError,
    IllegalStateError,
    InconsistentClusterIdError,
    InvalidProducerIdMappingError,
    ProducerFencedError,
    SemelError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from semel_common.ids import GroupId, Participant

FATAL = (ProducerFencedError, InvalidProducerIdMappingError)
"""Errors that end the producer. Any other error only aborts the transaction."""

_UNANSWERED_ABORT = "the abort is not answered yet; begin_transaction and abort send it again"
_UNANSWERED = {
    State.INITIALIZING: "init_transactions was not answered; call it again",
    State.PREPARING_TRANSACTION: "prepare was not answered; call it again, or abort",
    State.COMMITTING_TRANSACTION: (
        "the outcome of the last commit is not known; await resolve() of its"
        " TransactionOutcomeUnknownError, or call commit again"
    ),
}
"""What is said if no call is in progress: the last one has ended without an answer."""


def out_of_order(call: Call, state: State, transactional_id: str) -> IllegalStateError:
    """Return the error of a call that the state does not allow."""
    message = f"{call} is not possible in state {state}"
    if state is State.ABORTING_TRANSACTION:
        message = f"{message}: {_UNANSWERED_ABORT}"
    elif call in (Call.INIT_TRANSACTIONS, Call.BEGIN_TRANSACTION):
        if state is State.IN_TRANSACTION:
            message = f"{message}: {one_at_a_time(transactional_id)}"
        elif state in _UNANSWERED:
            message = f"{message}: {_UNANSWERED[state]}"
    return IllegalStateError(message, state=state)


def one_at_a_time(transactional_id: str) -> str:
    """Return what a program is told whose tasks use one producer at the same time."""
    return (
        f"the producer {transactional_id!r} is in use, and there is one transaction at a time for"
        " each producer; end that one first, or let tasks that run at the same time share a pool:"
        " client.transactions(prefix, size=8)"
    )


def standing_in_the_way(call: Call, state: State, error: SemelError) -> SemelError:
    """Return the error that prevents a call, to be raised once more."""
    kind: type[SemelError] = ApplicationRecoverableError
    message = "this producer can only be closed"
    if isinstance(error, (*FATAL, InconsistentClusterIdError)):
        kind = type(error)
    elif state is State.ABORTABLE_ERROR:
        kind, message = TransactionAbortableError, "the transaction can only be aborted"
    again = kind(f"{call} is not possible, {message}: {error.message}", state=state)
    again.__cause__ = error
    return again


def not_committed(
    error: SemelError, transactional_id: str, producer_epoch: int
) -> TransactionAbortedError:
    """Return the error of a transaction that never commits, with its cause."""
    message = f"transaction {producer_epoch} of {transactional_id} is not committed"
    aborted = TransactionAbortedError(f"{message}: {error.message}", **error.details)
    aborted.__cause__ = error
    return aborted


def outcome_unknown(
    error: SemelError,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    *,
    can_ask_again: bool,
) -> TransactionOutcomeUnknownError:
    """Return the error of a commit that was sent, and has no definite answer."""
    unknown = TransactionOutcomeUnknownError(
        f"commit of transaction {producer_epoch} of {transactional_id} was sent, "
        f"its outcome is not known: {error.message}",
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        can_ask_again=can_ask_again,
    )
    unknown.__cause__ = error
    return unknown


def unacknowledged(participants: Iterable[Participant]) -> TransactionAbortableError:
    """Return the error of a commit whose participants have not acknowledged everything."""
    names = [
        each.group_id if isinstance(each, GroupId) else f"{each.topic_id}-{each.partition}"
        for each in participants
    ]
    return TransactionAbortableError(f"not acknowledged: {', '.join(names)}")
