"""Answers the RPCs by which operators end transactions: checks their form, runs the machine, logs.

Nothing is decided here; see ``machine/operators.py``. What an operator does is logged with who and
why, dry runs included.
"""

from collections.abc import Callable

import structlog

from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_common.wire.messages.request_bounds import OPERATOR_LENGTH_MAX
from semel_common.wire.methods import ABORT_TRANSACTION, FENCE_PRODUCER
from semel_coordinator.transactions.machine import TransactionLimits, TransactionsMachine
from semel_coordinator.transactions.rpc import requests
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.form_checks import require_name

log = structlog.get_logger(__name__)


class OperatorsService:
    """The handlers of what operators do; a part of TransactionsService."""

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
        handlers.add(ABORT_TRANSACTION, self.abort_transaction)
        handlers.add(FENCE_PRODUCER, self.fence_producer)

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
        require_name("operator.name", operator.name, length_max=OPERATOR_LENGTH_MAX)
    if not dry_run or operator.reason:
        require_name("operator.reason", operator.reason, length_max=OPERATOR_LENGTH_MAX)
