"""GetTransactionOutcome: how a transaction ended, by one of its names."""

from dataclasses import dataclass

from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_coordinator.transactions.machine import (
    AbortReason,
    KnownOutcome,
    OutcomeAnswer,
    TransactionLimits,
    TransactionName,
)
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_int

_OUTCOMES = {
    KnownOutcome.COMMITTED: wire.TRANSACTION_OUTCOME_COMMITTED,
    KnownOutcome.ABORTED: wire.TRANSACTION_OUTCOME_ABORTED,
    KnownOutcome.ONGOING: wire.TRANSACTION_OUTCOME_ONGOING,
    KnownOutcome.PREPARED: wire.TRANSACTION_OUTCOME_PREPARED,
    KnownOutcome.TOO_OLD_TO_KNOW: wire.TRANSACTION_OUTCOME_TOO_OLD_TO_KNOW,
}
_REASONS: dict[AbortReason | None, wire.AbortReason.ValueType] = {
    None: wire.ABORT_REASON_UNSPECIFIED,
    AbortReason.CLIENT: wire.ABORT_REASON_CLIENT,
    AbortReason.TIMED_OUT: wire.ABORT_REASON_TIMED_OUT,
    AbortReason.FENCED: wire.ABORT_REASON_FENCED,
    AbortReason.OPERATOR: wire.ABORT_REASON_OPERATOR,
}


@dataclass(frozen=True, slots=True)
class OutcomeTeller:
    """Answers GetTransactionOutcome."""

    parts: ServiceParts

    async def get_transaction_outcome(
        self, request: wire.GetTransactionOutcomeRequest, _call: Call
    ) -> wire.GetTransactionOutcomeResponse:
        """Tell how a transaction ended."""
        parts = self.parts
        parts.claim.check()
        name = _name(request, parts.limits)
        now_ms = parts.clock.now_ms()
        answer = await parts.runner.run(
            lambda: parts.machine.get_transaction_outcome(name, now_ms=now_ms)
        )
        if answer.outcome is KnownOutcome.NEVER_GIVEN:
            raise _never_given(name, answer)
        return wire.GetTransactionOutcomeResponse(
            outcome=_OUTCOMES[answer.outcome],
            abort_reason=_REASONS[answer.reason],
            complete=answer.is_complete,
            transactional_id=answer.transactional_id,
            producer_id=answer.producer_id,
            current_epoch=answer.current_epoch,
            time_left_ms=answer.time_left_ms,
        )


def _name(request: wire.GetTransactionOutcomeRequest, limits: TransactionLimits) -> TransactionName:
    """Read which transaction is meant: by one of its names at least."""
    if not request.transactional_id and not request.producer_id:
        raise InvalidRequestError(
            "neither transactional_id nor producer_id is given", field="transactional_id"
        )
    transactional_id = (
        request_fields.transactional_id(request.transactional_id, limits)
        if request.transactional_id
        else None
    )
    producer_id = (
        require_int("producer_id", request.producer_id, minimum=1) if request.producer_id else None
    )
    return TransactionName(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=require_int("producer_epoch", request.producer_epoch),
    )


def _never_given(name: TransactionName, answer: OutcomeAnswer) -> InvalidRequestError:
    return InvalidRequestError(
        f"producer epoch {name.producer_epoch} of producer id {answer.producer_id} was never given"
        f" out: the current one is {answer.current_epoch}",
        current_epoch=answer.current_epoch,
    )
