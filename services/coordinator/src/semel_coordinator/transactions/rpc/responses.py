"""Makes responses from the machine's answers."""

from collections.abc import Callable, Iterable

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.wire.status import to_value
from semel_coordinator.transactions.machine import (
    NO_VERSION,
    FenceAnswer,
    InquiryAnswer,
    InquiryOutcome,
    JointDescription,
    PreparedTransaction,
    TransactionalIdDescription,
    TransactionDescription,
    TransactionKey,
    TransactionListing,
    TransactionState,
)
from semel_coordinator.transactions.machine.state.entities import ParticipantSet
from semel_coordinator.transactions.rpc.participant_messages import write_participants

_STATES = {
    TransactionState.EMPTY: wire.TRANSACTION_STATE_EMPTY,
    TransactionState.ONGOING: wire.TRANSACTION_STATE_ONGOING,
    TransactionState.PREPARED: wire.TRANSACTION_STATE_PREPARED,
    TransactionState.PREPARE_COMMIT: wire.TRANSACTION_STATE_PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT: wire.TRANSACTION_STATE_PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT: wire.TRANSACTION_STATE_COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT: wire.TRANSACTION_STATE_COMPLETE_ABORT,
}
_OUTCOMES = {
    InquiryOutcome.LATER: wire.INQUIRY_OUTCOME_LATER,
    InquiryOutcome.ONGOING: wire.INQUIRY_OUTCOME_ONGOING,
    InquiryOutcome.COMMITTED: wire.INQUIRY_OUTCOME_COMMITTED,
    InquiryOutcome.ABORTED: wire.INQUIRY_OUTCOME_ABORTED,
    InquiryOutcome.NEVER_GIVEN: wire.INQUIRY_OUTCOME_NEVER_GIVEN,
}

Missing = Callable[[TransactionKey], ParticipantSet | None]
"""The participants that have not acknowledged a transaction's marker; None if unknown."""


def init_producer_id(
    key: TransactionKey,
    prepared: Iterable[PreparedTransaction] = (),
    *,
    expiration_ms: int = 0,
) -> wire.InitProducerIdResponse:
    """Tell a producer who it is, what it has to complete, and when its id is forgotten."""
    return wire.InitProducerIdResponse(
        producer_id=key.producer_id,
        producer_epoch=key.producer_epoch,
        transactional_id_expiration_ms=expiration_ms,
        prepared=[
            wire.PreparedTransaction(
                producer_epoch=each.producer_epoch,
                start_time_ms=each.start_ms,
                prepared_time_ms=each.prepared_ms,
            )
            for each in prepared
        ],
    )


def end_txn(next_key: TransactionKey) -> wire.EndTxnResponse:
    """Tell a producer its next transaction."""
    return wire.EndTxnResponse(
        producer_id=next_key.producer_id, producer_epoch=next_key.producer_epoch
    )


def prepare_txn(next_key: TransactionKey) -> wire.PrepareTxnResponse:
    """Tell a producer its next transaction."""
    return wire.PrepareTxnResponse(
        producer_id=next_key.producer_id, producer_epoch=next_key.producer_epoch
    )


def inquire_transactions(answers: Iterable[InquiryAnswer]) -> wire.InquireTransactionsResponse:
    """Tell a participant what it asked for."""
    return wire.InquireTransactionsResponse(answers=[_inquiry_answer(answer) for answer in answers])


def write_fence_answers(
    answers: Iterable[FenceAnswer], response: wire.InquireTransactionsResponse
) -> None:
    """Tell a participant which producers it may forget."""
    for answer in answers:
        out = response.fences.add(needless=answer.is_needless)
        if answer.error is not None:
            out.error.CopyFrom(to_value(answer.error))


def transactional_id_description(
    found: TransactionalIdDescription, *, missing: Missing
) -> wire.TransactionalIdDescription:
    """Describe one transactional id."""
    out = wire.TransactionalIdDescription(transactional_id=found.transactional_id)
    if found.error is not None:
        out.error.CopyFrom(to_value(found.error))
        return out
    out.producer_id = found.producer_id
    out.producer_epoch = found.producer_epoch
    out.transaction_timeout_ms = found.timeout_ms
    if found.joint is not None:
        _write_joint(found.joint, out.joint)
    for transaction in found.transactions:
        described = out.transactions.add()
        _write_transaction(transaction, missing, described)
        if found.joint is not None:
            described.producer_id = transaction.producer_id
    return out


def transaction_listing(listing: TransactionListing) -> wire.TransactionListing:
    """Return one entry of a list."""
    return wire.TransactionListing(
        transactional_id=listing.transactional_id,
        producer_id=listing.producer_id,
        producer_epoch=listing.producer_epoch,
        state=_STATES[listing.state],
        start_time_ms=listing.start_ms,
        incomplete_transactions=listing.incomplete_transactions,
        transaction_timeout_ms=listing.timeout_ms,
        last_update_time_ms=listing.last_update_ms,
        fenced_transactions=listing.fenced_transactions,
        joint_writers=listing.joint_writers,
    )


def _inquiry_answer(answer: InquiryAnswer) -> wire.InquiryAnswer:
    return wire.InquiryAnswer(
        outcome=_OUTCOMES[answer.outcome],
        coordinator_epoch=answer.coordinator_epoch,
        time_left_ms=answer.time_left_ms,
        current_epoch=answer.current_epoch,
        error=None if answer.error is None else to_value(answer.error),
    )


def _write_joint(joint: JointDescription, out: wire.JointDescription) -> None:
    out.owner = joint.known.owner
    out.run = joint.known.run
    out.committed_version = joint.known.committed_version
    out.open_version = joint.known.open_version
    if joint.known.open_version != NO_VERSION:
        out.start_time_ms = joint.known.start_ms
        out.kept_alive_ms = joint.kept_alive_ms
    for writer in joint.writers:
        out.writers.add(
            writer=writer.writer,
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch,
        )


def _write_transaction(
    transaction: TransactionDescription, missing: Missing, out: wire.TransactionDescription
) -> None:
    out.producer_epoch = transaction.producer_epoch
    out.state = _STATES[transaction.state]
    out.start_time_ms = transaction.start_ms
    write_participants(transaction.participants, out.participants)
    if transaction.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
        unacknowledged = missing(transaction.key)
        write_participants(
            transaction.participants if unacknowledged is None else unacknowledged,
            out.missing_markers,
        )
    out.abort_reason = "" if transaction.reason is None else transaction.reason.value
    out.traceparent = transaction.traceparent
    out.prepared_time_ms = transaction.prepared_ms
