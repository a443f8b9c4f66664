"""PrepareTxn and CompletePreparedTxn: for two-phase commit with a system outside (KIP-939's use).

Theory of operation. To prepare a transaction is a promise: from then on it can be committed, and
only its owner decides. It has no time-out any more, and a participant that asks is told to wait,
whatever its age. As a decision does, preparing ends the transaction for its producer, which may
begin the next epoch; so a producer may have several prepared ones, and each is completed by itself,
by any client that knows the decision of the outside system.

An owner that dies leaves them to its successor: InitProducerId with keep_prepared tells it which
ones there are, and without it they abort. A caller that says its own epoch is fenced by the
successor's; one that says none acts on the word of the outside system, which does the fencing.
"""

from collections.abc import Iterable

from semel_common.errors import (
    InvalidTxnStateError,
    ProducerFencedError,
    SemelError,
    ThrottlingQuotaExceededError,
)
from semel_coordinator.transactions.machine.capacity import no_room
from semel_coordinator.transactions.machine.end_txn import (
    EndTxnAnswer,
    EpochRow,
    check_incomplete,
    refused,
    row_of,
)
from semel_coordinator.transactions.machine.state.entities import (
    NOBODY,
    DecidedTransaction,
    ParticipantSet,
    PreparedTransaction,
    Producer,
    TransactionalId,
    TransactionKey,
    in_order,
)
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.people import Operator
from semel_coordinator.transactions.machine.state.records import (
    TransactionCompleted,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import (
    COMPLETED,
    AbortReason,
    Outcome,
    TransactionState,
)
from semel_runtime.machine import Result

PREPARE_TABLE: dict[EpochRow, EndTxnAnswer] = {
    EpochRow.CURRENT: EndTxnAnswer.DECIDE,
    EpochRow.LAST_PREPARED: EndTxnAnswer.SUCCESS,
    EpochRow.LAST_COMMITTED: EndTxnAnswer.INVALID_TXN_STATE,
    EpochRow.LAST_ABORTED_BY_CLIENT: EndTxnAnswer.INVALID_TXN_STATE,
    EpochRow.LAST_ABORTED_FOR_CLIENT: EndTxnAnswer.TRANSACTION_ABORTABLE,
    EpochRow.LAST_FENCED: EndTxnAnswer.PRODUCER_FENCED,
    EpochRow.OLDER: EndTxnAnswer.PRODUCER_FENCED,
    EpochRow.NEVER_GIVEN: EndTxnAnswer.PRODUCER_FENCED,
}
"""What PrepareTxn answers for an epoch e: DECIDE prepares it."""


def prepare(
    state: TransactionsState,
    limits: TransactionLimits,
    producer: Producer,
    key: TransactionKey,
    *,
    named: ParticipantSet | None,
    traceparent: str,
    now_ms: int,
) -> Result[TransactionKey, TransactionsRecord]:
    """Prepare a transaction, and answer its producer's next one."""
    answer = PREPARE_TABLE[row_of(producer, key.producer_epoch)]
    next_key = TransactionKey(key.producer_id, key.producer_epoch + 1)
    if answer is EndTxnAnswer.SUCCESS:
        return Result(next_key)
    if answer is not EndTxnAnswer.DECIDE:
        raise refused(producer, key.producer_epoch, answer)
    records = _prepare_records(
        state, limits, producer, named=named, traceparent=traceparent, now_ms=now_ms
    )
    return Result(next_key, records)


def complete(
    state: TransactionsState,
    producer: Producer,
    key: TransactionKey,
    *,
    commit: bool,
    producer_epoch: int | None,
    operator: Operator | None,
    traceparent: str,
    now_ms: int,
) -> Result[None, TransactionsRecord]:
    """Decide a prepared transaction, for a caller of an epoch, or of none."""
    prepared = state.prepared.get(key)
    if prepared is None:
        wrong = _not_prepared(producer, key.producer_epoch, commit=commit)
        if wrong is not None:
            raise wrong
        return Result(None)
    _check_may_complete(
        state.transactional_ids[producer.transactional_id], producer, producer_epoch
    )
    aborted_by = AbortReason.OPERATOR if producer_epoch is None else AbortReason.CLIENT
    records = completion_records(
        producer,
        prepared,
        reason=None if commit else aborted_by,
        operator=operator if producer_epoch is None else None,
        traceparent=traceparent,
        now_ms=now_ms,
    )
    return Result(None, records)


def completion_records(
    producer: Producer,
    prepared: PreparedTransaction,
    *,
    reason: AbortReason | None,
    operator: Operator | None = None,
    traceparent: str = "",
    now_ms: int,
) -> tuple[TransactionsRecord, ...]:
    """Abort a prepared transaction for a reason, or commit it without one.

    Never refused: its participants have had their room since it was prepared.
    """
    after = producer.with_completed(prepared.producer_epoch, reason, now_ms)
    return (*_decision(prepared, reason, traceparent, now_ms, operator), after)


def abort_all(
    state: TransactionsState, producer: Producer, *, reason: AbortReason, now_ms: int
) -> tuple[Producer, tuple[TransactionsRecord, ...]]:
    """Abort all that a producer has prepared.

    Returns the producer afterwards, and the records without the one of the producer, which may
    change again.
    """
    records: list[TransactionsRecord] = []
    for prepared in state.prepared_of(producer.producer_id):
        records += _decision(prepared, reason, "", now_ms)
        producer = producer.with_completed(prepared.producer_epoch, reason, now_ms)
    return producer, tuple(records)


def _prepare_records(
    state: TransactionsState,
    limits: TransactionLimits,
    producer: Producer,
    *,
    named: ParticipantSet | None,
    traceparent: str,
    now_ms: int,
) -> tuple[TransactionsRecord, ...]:
    """Prepare the current epoch for the named participants; without names, the registered ones.

    A transaction without participants is prepared too: its owner completes it as any other. Raises
    ConcurrentTransactionsError and ThrottlingQuotaExceededError past the limits.
    """
    ongoing = state.ongoing.get(producer.producer_id)
    registered = NOBODY if ongoing is None else ongoing.participants.keys()
    committing = in_order(registered) if named is None else named
    if len(producer.prepared) >= limits.prepared_transactions_max:
        raise ThrottlingQuotaExceededError(
            f"{producer.transactional_id!r}: {len(producer.prepared)} transactions are prepared and"
            f" not completed, the limit is {limits.prepared_transactions_max}"
        )
    if registered or committing:
        check_incomplete(state, limits, producer)
    new = [each for each in committing if each not in registered]
    full = no_room(state, limits, participants=new, begins=ongoing is None)
    if full is not None:
        raise full
    prepared = PreparedTransaction(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        start_ms=now_ms if ongoing is None else ongoing.start_ms,
        prepared_ms=now_ms,
        committing=committing,
        aborting=in_order(each for each in registered if each not in committing),
        traceparent=traceparent or ("" if ongoing is None else ongoing.traceparent),
    )
    return (prepared, producer.with_prepared(now_ms))


def _check_may_complete(
    known: TransactionalId, producer: Producer, producer_epoch: int | None
) -> None:
    """Refuse a caller whose epoch is not one of the instance in charge.

    Any epoch of it will do: its transactions go on while it completes older ones.
    """
    if producer_epoch is None or known.init_epoch <= producer_epoch <= producer.producer_epoch:
        return
    if producer_epoch > producer.producer_epoch:
        message = f"producer epoch {producer_epoch} was never given out"
    else:
        message = f"producer epoch {producer_epoch} is fenced by a newer producer instance"
    raise ProducerFencedError(
        f"{known.transactional_id!r}: {message}; the transaction is still prepared",
        outcome="PREPARED",
    )


def _not_prepared(producer: Producer, producer_epoch: int, *, commit: bool) -> SemelError | None:
    """Return what to raise for an epoch that is not prepared; None if it has ended as asked."""
    outcome = producer.outcome_of(producer_epoch)
    if outcome is not None:
        if (outcome is Outcome.COMMITTED) == commit:
            return None
        return InvalidTxnStateError(
            f"{producer.transactional_id!r}: the transaction of producer epoch {producer_epoch} is"
            f" {outcome.value.lower()}",
            outcome=outcome.value,
        )
    row = row_of(producer, producer_epoch)
    if row is EpochRow.NEVER_GIVEN:
        return refused(producer, producer_epoch, EndTxnAnswer.PRODUCER_FENCED)
    state = "is not prepared" if row is EpochRow.CURRENT else "is too old to know its outcome"
    return InvalidTxnStateError(
        f"{producer.transactional_id!r}: the transaction of producer epoch {producer_epoch} {state}"
    )


def _decision(
    prepared: PreparedTransaction,
    reason: AbortReason | None,
    traceparent: str,
    now_ms: int,
    operator: Operator | None = None,
) -> Iterable[TransactionsRecord]:
    commits = reason is None
    decided = DecidedTransaction(
        producer_id=prepared.producer_id,
        producer_epoch=prepared.producer_epoch,
        state=TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT,
        start_ms=prepared.start_ms,
        committing=prepared.committing if commits else NOBODY,
        aborting=prepared.aborting if commits else prepared.participants,
        reason=reason,
        traceparent=traceparent or prepared.traceparent,
        decided_ms=now_ms,
        prepared_ms=prepared.prepared_ms,
        operator=operator,
        client=prepared.client,
    )
    yield decided
    if not decided.participant_count:
        # No participant will acknowledge a marker, so no acknowledgement would complete it.
        yield TransactionCompleted(
            producer_id=decided.producer_id,
            producer_epoch=decided.producer_epoch,
            state=COMPLETED[decided.state],
            completed_ms=now_ms,
        )
