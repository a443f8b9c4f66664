"""PrepareTxn: a producer promises that its transaction can be committed."""

from dataclasses import dataclass

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.participant_names import has_names
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call


@dataclass(frozen=True, slots=True)
class TransactionPreparer:
    """Answers PrepareTxn."""

    parts: ServiceParts

    async def prepare_txn(
        self, request: wire.PrepareTxnRequest, call: Call
    ) -> wire.PrepareTxnResponse:
        """Prepare a transaction; its producer begins the next one."""
        parts = self.parts
        parts.claim.check()
        transactional_id = request_fields.transactional_id(request.transactional_id, parts.limits)
        key = request_fields.key(request.producer_id, request.producer_epoch)
        if has_names(request.participants.topics):
            await parts.names.give_ids([request.participants.topics], call)
        participants = request_fields.participants(request, parts.limits, commit=True)
        now_ms = parts.clock.now_ms()
        next_key = await parts.runner.run(
            lambda: parts.machine.prepare_txn(
                transactional_id,
                key,
                participants=participants,
                traceparent=request_fields.traceparent(call),
                now_ms=now_ms,
            )
        )
        return wire.PrepareTxnResponse(
            producer_id=next_key.producer_id, producer_epoch=next_key.producer_epoch
        )
