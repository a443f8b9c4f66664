"""Answers the RPCs about outcomes, and those by which operators make them: checks, runs, logs.

Nothing is decided here; see ``machine/outcome.py`` and ``machine/operators.py``. What an operator
does is logged with who and why, dry runs included.
"""

from collections.abc import Callable

import structlog

from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_common.wire.methods import (
    ABORT_TRANSACTION,
    FENCE_PRODUCER,
    GET_TRANSACTION_OUTCOME,
)
from semel_coordinator.transactions import requests
from semel_coordinator.transactions.machine import (
    AbortReason,
    KnownOutcome,
    OutcomeAnswer,
    TransactionLimits,
    TransactionName,
    TransactionsMachine,
)
from semel_coordinator.transactions.runs import Runs
from semel_runtime.clock import Clock
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.checks import require_int, require_name

log = structlog.get_logger(__name__)

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


_OPERATOR_LENGTH_MAX = 1_000


class OutcomesService:
    """The handlers of CoordinatorService that are about outcomes."""

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
        """Add a handler for each RPC."""
        handlers.add(GET_TRANSACTION_OUTCOME, self.get_transaction_outcome)
        handlers.add(ABORT_TRANSACTION, self.abort_transaction)
        handlers.add(FENCE_PRODUCER, self.fence_producer)

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

    async def abort_transaction(
        self, request: wire.AbortTransactionRequest, _call: Call
    ) -> wire.AbortTransactionResponse:
        """End a transaction in its producer's place."""
        self._check_claimed()
        transactional_id = requests.transactional_id(request.transactional_id, self._limits)
        key = requests.key(request.producer_id, request.producer_epoch)
        _check_operator(request.operator, dry_run=request.dry_run)
        now_ms = self._clock.now_ms()
        done = await self._runner.run(
            lambda: self._machine.upkeep.abort_transaction(
                transactional_id, key, dry_run=request.dry_run, now_ms=now_ms
            )
        )
        log.warning(
            "operator aborts transaction",
            transactional_id=transactional_id,
            producer_id=key.producer_id,
            producer_epoch=key.producer_epoch,
            participants=done.participants,
            already_aborted=done.already_aborted,
            dry_run=request.dry_run,
            operator=request.operator.name,
            reason=request.operator.reason,
        )
        return wire.AbortTransactionResponse(
            participants=done.participants, already_aborted=done.already_aborted
        )

    async def fence_producer(
        self, request: wire.FenceProducerRequest, _call: Call
    ) -> wire.FenceProducerResponse:
        """Take a transactional id from its producer."""
        self._check_claimed()
        transactional_id = requests.transactional_id(request.transactional_id, self._limits)
        instance_id = requests.instance_id(request.instance_id, self._limits)
        _check_operator(request.operator, dry_run=request.dry_run)
        now_ms = self._clock.now_ms()
        done = await self._runner.run(
            lambda: self._machine.upkeep.fence_producer(
                transactional_id, instance_id, dry_run=request.dry_run, now_ms=now_ms
            )
        )
        log.warning(
            "operator fences producer",
            transactional_id=transactional_id,
            producer_id=done.producer_id,
            fenced_epoch=done.fenced_epoch,
            participants=done.participants,
            dry_run=request.dry_run,
            operator=request.operator.name,
            reason=request.operator.reason,
        )
        return wire.FenceProducerResponse(
            producer_id=done.producer_id,
            fenced_epoch=done.fenced_epoch,
            participants=done.participants,
        )


def _check_operator(operator: wire.Operator, *, dry_run: bool) -> None:
    """Who acts must say who they are, and why: it is for the log."""
    if not dry_run or operator.name:
        require_name("operator.name", operator.name, length_max=_OPERATOR_LENGTH_MAX)
    if not dry_run or operator.reason:
        require_name("operator.reason", operator.reason, length_max=_OPERATOR_LENGTH_MAX)


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
