"""CompletePreparedTxn: a prepared transaction is committed or aborted."""

from dataclasses import dataclass

import structlog

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.machine import Outcome
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.operators.operator_field import operator_of
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_coordinator.transactions.rpc.wait_for_markers import wait_for_markers
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_int

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedCompleter:
    """Answers CompletePreparedTxn."""

    parts: ServiceParts

    async def complete_prepared_txn(
        self, request: wire.CompletePreparedTxnRequest, call: Call
    ) -> wire.CompletePreparedTxnResponse:
        """Decide a prepared transaction."""
        parts = self.parts
        parts.claim.check()
        transactional_id = request_fields.transactional_id(request.transactional_id, parts.limits)
        key = request_fields.key(request.producer_id, request.prepared_epoch, "prepared_epoch")
        producer_epoch: int | None = None
        if request.HasField("producer_epoch"):
            producer_epoch = require_int("producer_epoch", request.producer_epoch)
        wait = request_fields.wait_for(request.wait)
        commit = request_fields.is_commit(request.result)
        outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
        operator = operator_of(call, request.operator.name, request.operator.reason)
        now_ms = parts.clock.now_ms()
        await parts.runner.run(
            lambda: parts.machine.complete_prepared_txn(
                transactional_id,
                key,
                commit=commit,
                producer_epoch=producer_epoch,
                operator=operator,
                traceparent=request_fields.traceparent(call),
                now_ms=now_ms,
            )
        )
        log.info(
            "prepared transaction completed",
            transactional_id=transactional_id,
            producer_id=key.producer_id,
            producer_epoch=key.producer_epoch,
            outcome=outcome.value,
            by_producer=producer_epoch is not None,
            operator=request.operator.name,
            reason=request.operator.reason,
        )
        if wait == wire.WAIT_FOR_COMPLETE:
            facts = {"outcome": outcome.value}
            await wait_for_markers(
                parts, lambda: parts.machine.markers.is_complete(key), key.producer_id, call, facts
            )
        return wire.CompletePreparedTxnResponse()
