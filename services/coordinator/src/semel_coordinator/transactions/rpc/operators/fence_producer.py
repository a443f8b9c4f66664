"""FenceProducer: an operator takes a transactional id from its producer."""

from dataclasses import dataclass

import structlog

from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.operators.operator_field import check_operator
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProducerFencer:
    """Answers FenceProducer; logs who acts and why, dry runs included."""

    parts: ServiceParts

    async def fence_producer(
        self, request: wire.FenceProducerRequest, call: Call
    ) -> wire.FenceProducerResponse:
        """Take a transactional id from its producer."""
        parts = self.parts
        parts.claim.check()
        transactional_id = request_fields.transactional_id(request.transactional_id, parts.limits)
        instance_id = request_fields.instance_id(request.instance_id, parts.limits)
        operator = check_operator(request.operator, call, dry_run=request.dry_run)
        now_ms = parts.clock.now_ms()
        done = await parts.runner.run(
            lambda: parts.machine.operators.fence_producer(
                transactional_id,
                instance_id,
                operator=operator,
                dry_run=request.dry_run,
                now_ms=now_ms,
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
