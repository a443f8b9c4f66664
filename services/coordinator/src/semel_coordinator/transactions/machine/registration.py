"""AddPartitionsToTxn and AddOffsetsToTxn: which participants a transaction has.

Makes a transaction visible to operators, lets its time-out run, and makes its abort quick. Safety
does not rest on it: a participant that was never registered asks (protocol.md, section 6).
"""

from collections.abc import Sequence

from semel_common.errors import InvalidRequestError
from semel_common.ids import Participant
from semel_coordinator.transactions.machine.capacity import no_room
from semel_coordinator.transactions.machine.end_txn import EndTxnAnswer, EpochRow, refused, row_of
from semel_coordinator.transactions.machine.state.entities import OngoingTransaction, Producer
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import ParticipantsAdded
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState

REGISTRATION_TABLE: dict[EpochRow, EndTxnAnswer] = {
    EpochRow.CURRENT: EndTxnAnswer.DECIDE,
    EpochRow.LAST_PREPARED: EndTxnAnswer.INVALID_TXN_STATE,
    EpochRow.LAST_COMMITTED: EndTxnAnswer.INVALID_TXN_STATE,
    EpochRow.LAST_ABORTED_BY_CLIENT: EndTxnAnswer.INVALID_TXN_STATE,
    EpochRow.LAST_ABORTED_FOR_CLIENT: EndTxnAnswer.TRANSACTION_ABORTABLE,
    EpochRow.LAST_FENCED: EndTxnAnswer.PRODUCER_FENCED,
    EpochRow.OLDER: EndTxnAnswer.PRODUCER_FENCED,
    EpochRow.NEVER_GIVEN: EndTxnAnswer.PRODUCER_FENCED,
}
"""What a registration is answered for an epoch e; a time-out is never reported as fenced."""


def check_current(producer: Producer, producer_epoch: int) -> None:
    """Raise what a registration is answered, unless the epoch is the current one."""
    answer = REGISTRATION_TABLE[row_of(producer, producer_epoch)]
    if answer is not EndTxnAnswer.DECIDE:
        raise refused(producer, producer_epoch, answer)


def added(
    state: TransactionsState,
    limits: TransactionLimits,
    producer: Producer,
    participants: Sequence[Participant],
    *,
    traceparent: str,
    now_ms: int,
) -> ParticipantsAdded | None:
    """Return the record that adds to the current epoch what is new; None if nothing is.

    Raises ThrottlingQuotaExceededError and InvalidRequestError past the limits.
    """
    ongoing = state.ongoing.get(producer.producer_id)
    new = tuple(dict.fromkeys(participants)) if ongoing is None else _not_in(ongoing, participants)
    if not new:
        return None
    full = no_room(state, limits, participants=new, begins=ongoing is None)
    if full is not None:
        raise full
    count = len(new) + (0 if ongoing is None else len(ongoing.participants))
    if count > limits.participants_max:
        raise InvalidRequestError(
            f"{producer.transactional_id!r}: a transaction of {count} participants is over"
            f" {limits.participants_max}"
        )
    return ParticipantsAdded(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        start_ms=now_ms if ongoing is None else ongoing.start_ms,
        traceparent=traceparent if ongoing is None else ongoing.traceparent,
        participants=new,
    )


def _not_in(
    ongoing: OngoingTransaction, participants: Sequence[Participant]
) -> tuple[Participant, ...]:
    registered = ongoing.participants
    return tuple(
        dict.fromkeys(participant for participant in participants if participant not in registered)
    )
