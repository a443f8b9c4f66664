"""EndTxn: the retry table of protocol.md, section 3, as data, and what each of its answers is.

Theory of operation. Epochs rise with every decision, so an epoch says by itself which request a
repeat repeats. If the current epoch belongs to a successor, no answer tells it: a holder of an old
epoch must not find a way to act as the new one.
"""

from enum import StrEnum
from typing import NamedTuple, assert_never

from semel_common.errors import (
    ConcurrentTransactionsError,
    InvalidTxnStateError,
    ProducerFencedError,
    SemelError,
    ThrottlingQuotaExceededError,
    TransactionAbortableError,
)
from semel_coordinator.transactions.machine.capacity import no_room
from semel_coordinator.transactions.machine.decisions import aborted, committed
from semel_coordinator.transactions.machine.state.entities import (
    NOBODY,
    ParticipantSet,
    Producer,
    in_order,
)
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason, Outcome


class EpochRow(StrEnum):
    """How an epoch e relates to its producer's current epoch c: the rows of the table."""

    CURRENT = "e = c"
    LAST_PREPARED = "e = c-1, prepared"
    LAST_COMMITTED = "e = c-1, committed"
    LAST_ABORTED_BY_CLIENT = "e = c-1, aborted by this client"
    LAST_ABORTED_FOR_CLIENT = "e = c-1, aborted by time-out or operator"
    LAST_FENCED = "e = c-1, aborted by fencing"
    OLDER = "e < c-1"
    NEVER_GIVEN = "e > c"


class EndTxnAnswer(StrEnum):
    """What EndTxn does: the cells of the table."""

    DECIDE = "decides"
    ABORT_PREPARED = "aborts what is prepared"
    SUCCESS = "success, with the next epoch"
    INVALID_TXN_STATE = "INVALID_TXN_STATE, with the outcome"
    TRANSACTION_ABORTABLE = "TRANSACTION_ABORTABLE, with reason and next epoch"
    PRODUCER_FENCED = "PRODUCER_FENCED, with the outcome where it is known"


class EndTxnCell(NamedTuple):
    """One row of the table."""

    commit: EndTxnAnswer
    abort: EndTxnAnswer


END_TXN_TABLE: dict[EpochRow, EndTxnCell] = {
    EpochRow.CURRENT: EndTxnCell(EndTxnAnswer.DECIDE, EndTxnAnswer.DECIDE),
    # The client of this abort had no answer, so no program knows the transaction as prepared.
    EpochRow.LAST_PREPARED: EndTxnCell(EndTxnAnswer.INVALID_TXN_STATE, EndTxnAnswer.ABORT_PREPARED),
    EpochRow.LAST_COMMITTED: EndTxnCell(EndTxnAnswer.SUCCESS, EndTxnAnswer.INVALID_TXN_STATE),
    EpochRow.LAST_ABORTED_BY_CLIENT: EndTxnCell(
        EndTxnAnswer.INVALID_TXN_STATE, EndTxnAnswer.SUCCESS
    ),
    EpochRow.LAST_ABORTED_FOR_CLIENT: EndTxnCell(
        EndTxnAnswer.TRANSACTION_ABORTABLE, EndTxnAnswer.SUCCESS
    ),
    EpochRow.LAST_FENCED: EndTxnCell(EndTxnAnswer.PRODUCER_FENCED, EndTxnAnswer.PRODUCER_FENCED),
    EpochRow.OLDER: EndTxnCell(EndTxnAnswer.PRODUCER_FENCED, EndTxnAnswer.PRODUCER_FENCED),
    EpochRow.NEVER_GIVEN: EndTxnCell(EndTxnAnswer.PRODUCER_FENCED, EndTxnAnswer.PRODUCER_FENCED),
}
"""What EndTxn answers for an epoch e of the producer that the transactional id has."""

_ROW_OF_REASON = {
    AbortReason.CLIENT: EpochRow.LAST_ABORTED_BY_CLIENT,
    AbortReason.TIMED_OUT: EpochRow.LAST_ABORTED_FOR_CLIENT,
    AbortReason.OPERATOR: EpochRow.LAST_ABORTED_FOR_CLIENT,
    AbortReason.FENCED: EpochRow.LAST_FENCED,
}


def row_of(producer: Producer, producer_epoch: int) -> EpochRow:
    """Return the row of an epoch."""
    current = producer.producer_epoch
    if producer_epoch == current:
        return EpochRow.CURRENT
    if producer_epoch > current:
        return EpochRow.NEVER_GIVEN
    if producer_epoch < current - 1:
        return EpochRow.OLDER
    if producer_epoch in producer.prepared:
        return EpochRow.LAST_PREPARED
    if producer.outcome_of(producer_epoch) is Outcome.COMMITTED:
        return EpochRow.LAST_COMMITTED
    assert producer.abort_reason is not None, "the last epoch was aborted for a reason"
    return _ROW_OF_REASON[producer.abort_reason]


def refused(producer: Producer, producer_epoch: int, answer: EndTxnAnswer) -> SemelError:
    """Make the error of an answer that is one."""
    row = row_of(producer, producer_epoch)
    details = _facts(producer, producer_epoch)
    message = f"{producer.transactional_id!r}: {_sentence(row, producer, producer_epoch)}"
    match answer:
        case EndTxnAnswer.INVALID_TXN_STATE:
            return InvalidTxnStateError(message, **details)
        case EndTxnAnswer.TRANSACTION_ABORTABLE:
            next_epoch = producer.producer_epoch
            return TransactionAbortableError(message, next_epoch=next_epoch, **details)
        case EndTxnAnswer.PRODUCER_FENCED:
            return ProducerFencedError(message, **details)
        case EndTxnAnswer.DECIDE | EndTxnAnswer.SUCCESS | EndTxnAnswer.ABORT_PREPARED:
            raise AssertionError(f"{answer} is no error")
        case _:
            assert_never(answer)


def _sentence(row: EpochRow, producer: Producer, producer_epoch: int) -> str:
    """Say where an epoch stands."""
    of_transaction = f"the transaction of producer epoch {producer_epoch} is"
    of_epoch = f"producer epoch {producer_epoch}"
    match row:
        case EpochRow.CURRENT:
            return f"{of_epoch} is the current one"
        case EpochRow.LAST_PREPARED:
            return f"{of_transaction} prepared: CompletePreparedTxn ends it"
        case EpochRow.LAST_COMMITTED:
            return f"{of_transaction} committed"
        case EpochRow.LAST_ABORTED_BY_CLIENT:
            return f"{of_transaction} aborted"
        case EpochRow.LAST_ABORTED_FOR_CLIENT:
            next_epoch = producer.producer_epoch
            return f"{of_transaction} aborted ({producer.abort_reason}); {next_epoch} is the next"
        case EpochRow.LAST_FENCED:
            # The current epoch belongs to the successor: its number is for the successor only.
            return f"{of_epoch} is fenced by a newer producer instance"
        case EpochRow.OLDER:
            return f"{of_epoch} is too old: a newer producer instance has taken over"
        case EpochRow.NEVER_GIVEN:
            return f"{of_epoch} was never given out"
        case _:
            assert_never(row)


def _facts(producer: Producer, producer_epoch: int) -> dict[str, str]:
    """Return what makes an answer definite: the outcome, and why it was aborted."""
    if producer_epoch in producer.prepared:
        return {"outcome": "PREPARED"}
    outcome = producer.outcome_of(producer_epoch)
    if outcome is None:
        return {}
    facts = {"outcome": outcome.value}
    reason = producer.reason_of(producer_epoch)
    if reason is not None:
        facts["reason"] = reason.value
    return facts


def commit_records(
    state: TransactionsState,
    limits: TransactionLimits,
    producer: Producer,
    *,
    named: ParticipantSet | None,
    traceparent: str,
    now_ms: int,
) -> tuple[TransactionsRecord, ...]:
    """Commit for the named participants; without names, for the registered ones.

    A registered one that is not named gets an ABORT marker: nothing of it was acknowledged. Raises
    ConcurrentTransactionsError and ThrottlingQuotaExceededError past the limits.
    """
    ongoing = state.ongoing.get(producer.producer_id)
    registered = NOBODY if ongoing is None else ongoing.participants.keys()
    committing = in_order(registered) if named is None else named
    if registered or committing:
        check_incomplete(state, limits, producer)
        full = _no_room_for(state, limits, committing, registered)
        if full is not None:
            raise full
    return committed(
        producer,
        ongoing,
        committing=committing,
        aborting=in_order(each for each in registered if each not in committing),
        traceparent=traceparent,
        now_ms=now_ms,
    )


def abort_records(
    state: TransactionsState,
    limits: TransactionLimits,
    producer: Producer,
    *,
    named: ParticipantSet | None,
    traceparent: str,
    now_ms: int,
) -> tuple[TransactionsRecord, ...]:
    """Abort for participants that are registered or named.

    Never refused: past the limits, a participant that is only named gets no marker, and asks.
    """
    ongoing = state.ongoing.get(producer.producer_id)
    registered = NOBODY if ongoing is None else ongoing.participants.keys()
    full = None if named is None else _no_room_for(state, limits, named, registered)
    return aborted(
        producer,
        ongoing,
        reason=AbortReason.CLIENT,
        named=NOBODY if named is None or full is not None else named,
        traceparent=traceparent,
        now_ms=now_ms,
    )


def check_incomplete(
    state: TransactionsState, limits: TransactionLimits, producer: Producer
) -> None:
    """Raise ConcurrentTransactionsError if too many of a producer's transactions wait."""
    incomplete = state.incomplete_count(producer.producer_id)
    if incomplete >= limits.incomplete_transactions_max:
        raise ConcurrentTransactionsError(
            f"{producer.transactional_id!r}: {incomplete} transactions wait for their markers,"
            f" the limit is {limits.incomplete_transactions_max}"
        )


def _no_room_for(
    state: TransactionsState,
    limits: TransactionLimits,
    named: ParticipantSet,
    registered: ParticipantSet,
) -> ThrottlingQuotaExceededError | None:
    new = [each for each in named if each not in registered] if registered else named
    return no_room(state, limits, participants=new, begins=not registered) if new else None
