"""What coordinators are asked about single transactions, by the admin client and by producers."""

from collections.abc import Mapping

from aiosemel._cluster import Cluster
from aiosemel._retry import Deadline
from aiosemel.errors import InvalidRequestError
from aiosemel.outcomes import AbortReason, KnownOutcome, TransactionOutcomeDescription
from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_common.wire.methods import GET_TRANSACTION_OUTCOME

OUTCOMES: Mapping[int, KnownOutcome] = {
    wire.TRANSACTION_OUTCOME_COMMITTED: KnownOutcome.COMMITTED,
    wire.TRANSACTION_OUTCOME_ABORTED: KnownOutcome.ABORTED,
    wire.TRANSACTION_OUTCOME_ONGOING: KnownOutcome.ONGOING,
    wire.TRANSACTION_OUTCOME_PREPARED: KnownOutcome.PREPARED,
    wire.TRANSACTION_OUTCOME_TOO_OLD_TO_KNOW: KnownOutcome.TOO_OLD_TO_KNOW,
}
REASONS: Mapping[int, AbortReason] = {
    wire.ABORT_REASON_CLIENT: AbortReason.CLIENT,
    wire.ABORT_REASON_TIMED_OUT: AbortReason.TIMED_OUT,
    wire.ABORT_REASON_FENCED: AbortReason.FENCED,
    wire.ABORT_REASON_OPERATOR: AbortReason.OPERATOR,
}


async def get_outcome(
    cluster: Cluster,
    *,
    transactional_id: str | None,
    producer_id: int | None,
    producer_epoch: int,
    deadline: Deadline,
) -> TransactionOutcomeDescription:
    """Ask for an outcome; see ``Admin.get_transaction_outcome``."""
    if transactional_id is not None:
        route = cluster.coordinator_of(transactional_id)
    elif producer_id is not None:
        route = cluster.coordinator_of_producer(producer_id)
    else:
        raise InvalidRequestError("neither transactional_id nor producer_id is given")
    request = wire.GetTransactionOutcomeRequest(
        transactional_id=transactional_id or "",
        producer_id=producer_id or 0,
        producer_epoch=producer_epoch,
    )
    answer = await cluster.call(route, GET_TRANSACTION_OUTCOME, request, deadline=deadline)
    outcome = OUTCOMES[answer.outcome]
    return TransactionOutcomeDescription(
        transactional_id=answer.transactional_id,
        producer_id=answer.producer_id,
        producer_epoch=producer_epoch,
        outcome=outcome,
        abort_reason=REASONS.get(answer.abort_reason),
        is_complete=answer.complete,
        current_epoch=answer.current_epoch if answer.current_epoch >= 0 else None,
        time_left_ms=answer.time_left_ms if outcome is KnownOutcome.ONGOING else None,
    )
