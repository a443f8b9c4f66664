"""AbortTransaction: an operator aborts a transaction in its producer's place."""

from dataclasses import dataclass

import structlog

from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.operators.operator_field import check_operator
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TransactionAborter:
    """Answers AbortTransaction; logs who acts and why, dry runs included."""

    parts: ServiceParts

    async def abort_transaction(
        self, request: wire.AbortTransactionRequest, call: Call
    ) -> wire.AbortTransactionResponse:
        """End a transaction in its producer's place."""
        parts = self.parts
        parts.claim.check()
        transactional_id = request_fields.transactional_id(request.transactional_id, parts.limits)
        key = request_fields.key(request.producer_id, request.producer_epoch)
        operator = check_operator(request.operator, call, dry_run=request.dry_run)
        now_ms = parts.clock.now_ms()
        done = await parts.runner.run(
            lambda: parts.machine.operators.abort_transaction(
                transactional_id,
                key,
                operator=operator,
                dry_run=request.dry_run,
                now_ms=now_ms,
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
