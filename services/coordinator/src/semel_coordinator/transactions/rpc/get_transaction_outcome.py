"""Answers GetTransactionOutcome: checks its form, runs the machine.

Nothing is decided here; see ``machine/outcome.py``.
"""

from collections.abc import Callable

from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_common.wire.methods import GET_TRANSACTION_OUTCOME
from semel_coordinator.transactions.machine import (
    AbortReason,
    KnownOutcome,
    OutcomeAnswer,
    TransactionLimits,
    TransactionName,
    TransactionsMachine,
)
from semel_coordinator.transactions.rpc import requests
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock
from semel_runtime.server.calls import Call, Handlers
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


class OutcomeService:
    """The handler of GetTransactionOutcome; a part of TransactionsService."""

    def __init__(
        self,
        *,
        runner: Runs,
        machine: TransactionsMachine,
        clock: Clock,
        limits: TransactionLimits,
        check_claimed: Callable[[], None],
    ) -> None:
        """Answer by the machine. `check_claimed` raises until this instance is in charge."""
        self._runner = runner
        self._machine = machine
        self._clock = clock
        self._limits = limits
        self._check_claimed = check_claimed

    def register(self, handlers: Handlers) -> None:
        """Add the handler."""
        handlers.add(GET_TRANSACTION_OUTCOME, self.get_transaction_outcome)

    async def get_transaction_outcome(
        self, request: wire.GetTransactionOutcomeRequest, _call: Call
    ) -> wire.GetTransactionOutcomeResponse:
        """Tell how a transaction ended."""
        self._check_claimed()
        name = _name(request, self._limits)
        now_ms = self._clock.now_ms()
        answer = await self._runner.run(
            lambda: self._machine.get_transaction_outcome(name, now_ms=now_ms)
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
        requests.transactional_id(request.transactional_id, limits)
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
