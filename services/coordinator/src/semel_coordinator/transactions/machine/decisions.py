"""The records of a decision that ends a transaction, whatever caused it.

Both go into one journal commit: the outcome with everybody who must be told, and the producer's
next epoch. So there is no moment in which an epoch is decided and can still be written to.
"""

from semel_coordinator.transactions.machine.state.entities import (
    NOBODY,
    DecidedTransaction,
    OngoingTransaction,
    ParticipantSet,
    Producer,
    in_order,
)
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transitions import AbortReason, TransactionState


def committed(
    producer: Producer,
    ongoing: OngoingTransaction | None,
    *,
    committing: ParticipantSet,
    aborting: ParticipantSet,
    traceparent: str,
    now_ms: int,
) -> tuple[TransactionsRecord, ...]:
    """Commit the current epoch for some participants, and abort it for others."""
    after = producer.decided(None, now_ms)
    if not committing and not aborting:
        return (after,)
    decided = DecidedTransaction(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        state=TransactionState.PREPARE_COMMIT,
        start_ms=now_ms if ongoing is None else ongoing.start_ms,
        committing=committing,
        aborting=aborting,
        reason=None,
        traceparent=traceparent or ("" if ongoing is None else ongoing.traceparent),
        decided_ms=now_ms,
    )
    return (decided, after)


def aborted(
    producer: Producer,
    ongoing: OngoingTransaction | None,
    *,
    reason: AbortReason,
    named: ParticipantSet = NOBODY,
    traceparent: str = "",
    now_ms: int,
) -> tuple[TransactionsRecord, ...]:
    """Abort the current epoch for all that are registered or named."""
    after = producer.decided(reason, now_ms)
    registered = {} if ongoing is None else ongoing.participants
    if not registered and not named:
        return (after,)
    decided = DecidedTransaction(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        state=TransactionState.PREPARE_ABORT,
        start_ms=now_ms if ongoing is None else ongoing.start_ms,
        committing=NOBODY,
        aborting=in_order((*registered, *named)),
        reason=reason,
        traceparent=traceparent or ("" if ongoing is None else ongoing.traceparent),
        decided_ms=now_ms,
    )
    return (decided, after)
