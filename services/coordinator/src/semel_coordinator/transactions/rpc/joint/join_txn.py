"""JoinTxn: a process gets its writer in a joint transaction."""

from dataclasses import dataclass

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.machine import JoinTxn, TransactionLimits
from semel_coordinator.transactions.rpc.joint.joint_names import joint_name
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_name


@dataclass(frozen=True, slots=True)
class TransactionJoiner:
    """Answers JoinTxn."""

    parts: ServiceParts

    async def join_txn(self, request: wire.JoinTxnRequest, call: Call) -> wire.JoinTxnResponse:
        """Give a process its writer."""
        parts = self.parts
        parts.claim.check()
        join = _join(request, parts.limits, str(call.origin.principal))
        now_ms = parts.clock.now_ms()
        key = await parts.runner.run(lambda: parts.machine.joint.join_txn(join, now_ms=now_ms))
        if key is None:
            return wire.JoinTxnResponse(already_committed=True)
        return wire.JoinTxnResponse(producer_id=key.producer_id, producer_epoch=key.producer_epoch)


def _join(request: wire.JoinTxnRequest, limits: TransactionLimits, principal: str) -> JoinTxn:
    """Read a JoinTxn; the machine checks its timeout."""
    return JoinTxn(
        name=joint_name(request.transaction, limits),
        writer=require_name("writer", request.writer, length_max=limits.joint_name_length_max),
        timeout_ms=request.transaction_timeout_ms,
        reset=request.reset,
        one_shot=request.one_shot,
        principal=principal,
    )
