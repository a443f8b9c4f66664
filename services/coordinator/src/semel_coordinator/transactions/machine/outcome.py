"""GetTransactionOutcome: the outcome of a transaction, for any caller, any number of times.

Theory of operation. A decision begins the next epoch in the same commit, so an epoch says by itself
what can be known of it: the current one is undecided, older ones are decided, or prepared and so
undecided, and of the last 256 the outcome is kept beside the current state; so is that of the last
64 that were prepared, however old. What is older is never guessed. An answer that is not an outcome
rests on what this instance does not know, so it goes through a commit, which a deposed owner cannot
make; an outcome, once decided, is the same for everyone and for ever.
"""

from enum import StrEnum

from msgspec import Struct

from semel_common.errors import (
    InvalidProducerIdMappingError,
    InvalidRequestError,
    TransactionalIdNotFoundError,
)
from semel_common.ids import transaction_log_partition_of
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.entities import Producer, TransactionKey
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason, Outcome
from semel_runtime.machine import Result

NO_CURRENT_EPOCH = -1
"""The current epoch of a producer that is not known any more."""


class KnownOutcome(StrEnum):
    """The state of a transaction's outcome."""

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    ONGOING = "ONGOING"
    PREPARED = "PREPARED"
    TOO_OLD_TO_KNOW = "TOO_OLD_TO_KNOW"
    NEVER_GIVEN = "NEVER_GIVEN"
    """There is no such transaction: no producer had this epoch, or this producer id."""


class TransactionName(Struct, frozen=True, kw_only=True):
    """Which transaction is meant: by its transactional id, by its producer id, or by both."""

    transactional_id: str | None
    producer_id: int | None
    """None: the one that the transactional id has now."""
    producer_epoch: int


class OutcomeAnswer(Struct, frozen=True, kw_only=True):
    """The outcome of a transaction, as far as it is known."""

    outcome: KnownOutcome
    producer_id: int
    transactional_id: str = ""
    """Empty: the producer has none, or has it no longer."""
    current_epoch: int = NO_CURRENT_EPOCH
    reason: AbortReason | None = None
    """With ABORTED; None if it is not known any more."""
    is_complete: bool = False
    """Whether all markers are written."""
    time_left_ms: int = 0
    """With ONGOING."""


def find_outcome(
    state: TransactionsState, ownership: Ownership, name: TransactionName, *, now_ms: int
) -> Result[OutcomeAnswer, TransactionsRecord]:
    """Return the outcome of a transaction, as far as it is known.

    Raises TransactionalIdNotFoundError, InvalidProducerIdMappingError, NotCoordinatorError.
    """
    producer_id = _producer_id(state, ownership, name)
    producer = state.producers.get(producer_id)
    if producer is None:
        answer = _of_unknown_producer(state, producer_id)
    elif name.producer_epoch < producer.producer_epoch:
        answer = _of_older(state, producer, name.producer_epoch)
    elif name.producer_epoch == producer.producer_epoch:
        answer = _of_current(state, producer, now_ms)
    else:
        answer = _answer(producer, KnownOutcome.NEVER_GIVEN)
    definite = answer.outcome in (KnownOutcome.COMMITTED, KnownOutcome.ABORTED)
    return Result(answer, verify=not definite)


def _producer_id(state: TransactionsState, ownership: Ownership, name: TransactionName) -> int:
    """Return the producer id, once it is sure that this instance is in charge of it."""
    if name.transactional_id is None:
        assert name.producer_id is not None, "a name without both was refused at the edge"
        ownership.check_producer_id(name.producer_id)
        return name.producer_id
    partition = ownership.partition_for(name.transactional_id)
    if name.producer_id is not None:
        producer = state.producers.get(name.producer_id)
        if transaction_log_partition_of(name.producer_id) != partition or (
            producer is not None and producer.transactional_id != name.transactional_id
        ):
            raise InvalidProducerIdMappingError(
                f"producer id {name.producer_id} is none of {name.transactional_id!r}"
            )
        return name.producer_id
    if name.transactional_id in state.joints.by_id:
        raise InvalidRequestError(
            f"{name.transactional_id!r} is an id of joint transactions, whose writers have producer"
            " ids of their own: name one",
            field="producer_id",
        )
    known = state.transactional_ids.get(name.transactional_id)
    if known is None:
        raise TransactionalIdNotFoundError(f"no transactional id {name.transactional_id!r}")
    return known.producer_id


def _of_unknown_producer(state: TransactionsState, producer_id: int) -> OutcomeAnswer:
    """Answer for a producer id that has expired, never had transactions, or was never given."""
    was_given = state.was_given(producer_id)
    outcome = KnownOutcome.TOO_OLD_TO_KNOW if was_given else KnownOutcome.NEVER_GIVEN
    return OutcomeAnswer(outcome=outcome, producer_id=producer_id)


def _of_older(state: TransactionsState, producer: Producer, producer_epoch: int) -> OutcomeAnswer:
    if producer_epoch in producer.prepared:
        return _answer(producer, KnownOutcome.PREPARED)
    outcome = producer.outcome_of(producer_epoch)
    if outcome is None:
        return _answer(producer, KnownOutcome.TOO_OLD_TO_KNOW)
    key = TransactionKey(producer.producer_id, producer_epoch)
    return _answer(
        producer,
        KnownOutcome.COMMITTED if outcome is Outcome.COMMITTED else KnownOutcome.ABORTED,
        reason=producer.reason_of(producer_epoch),
        is_complete=key not in state.decided,
    )


def _of_current(state: TransactionsState, producer: Producer, now_ms: int) -> OutcomeAnswer:
    joint = state.joints.by_id.get(producer.transactional_id)
    if joint is not None:
        if not joint.is_live(producer.producer_id):
            return _answer(producer, KnownOutcome.NEVER_GIVEN)  # To no writer, so far.
        return _answer(producer, KnownOutcome.ONGOING, time_left_ms=joint.time_left_ms(now_ms))
    timeout_ms = state.transactional_ids[producer.transactional_id].timeout_ms
    ongoing = state.ongoing.get(producer.producer_id)
    age_ms = 0 if ongoing is None else max(0, now_ms - ongoing.start_ms)
    return _answer(producer, KnownOutcome.ONGOING, time_left_ms=max(0, timeout_ms - age_ms))


def _answer(
    producer: Producer,
    outcome: KnownOutcome,
    *,
    reason: AbortReason | None = None,
    is_complete: bool = False,
    time_left_ms: int = 0,
) -> OutcomeAnswer:
    return OutcomeAnswer(
        outcome=outcome,
        producer_id=producer.producer_id,
        transactional_id=producer.transactional_id,
        current_epoch=producer.producer_epoch,
        reason=reason,
        is_complete=is_complete,
        time_left_ms=time_left_ms,
    )
