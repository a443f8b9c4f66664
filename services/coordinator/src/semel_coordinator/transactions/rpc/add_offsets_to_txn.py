"""AddOffsetsToTxn: a client registers the consumer group whose offsets its transaction commits."""

from dataclasses import dataclass

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_name


@dataclass(frozen=True, slots=True)
class GroupAdder:
    """Answers AddOffsetsToTxn."""

    parts: ServiceParts

    async def add_offsets_to_txn(
        self, request: wire.AddOffsetsToTxnRequest, call: Call
    ) -> wire.AddOffsetsToTxnResponse:
        """Register a consumer group."""
        parts = self.parts
        parts.claim.check()
        transactional_id = request_fields.transactional_id(request.transactional_id, parts.limits)
        key = request_fields.key(request.producer_id, request.producer_epoch)
        group_id = require_name(
            "group_id", request.group_id, length_max=parts.limits.group_id_length_max
        )
        now_ms = parts.clock.now_ms()
        await parts.runner.run(
            lambda: parts.machine.add_offsets_to_txn(
                transactional_id,
                key,
                group_id,
                traceparent=request_fields.traceparent(call),
                now_ms=now_ms,
            )
        )
        return wire.AddOffsetsToTxnResponse()
