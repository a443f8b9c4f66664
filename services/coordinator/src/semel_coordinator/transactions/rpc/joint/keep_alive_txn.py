"""KeepAliveTxn: the owner of a joint transaction puts its timeout off."""

from dataclasses import dataclass

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.rpc.joint.joint_names import joint_name
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call


@dataclass(frozen=True, slots=True)
class TransactionKeeper:
    """Answers KeepAliveTxn."""

    parts: ServiceParts

    async def keep_alive_txn(
        self, request: wire.KeepAliveTxnRequest, _call: Call
    ) -> wire.KeepAliveTxnResponse:
        """Put a timeout off."""
        parts = self.parts
        parts.claim.check()
        name = joint_name(request.transaction, parts.limits)
        now_ms = parts.clock.now_ms()
        committed = await parts.runner.run(
            lambda: parts.machine.joint.keep_alive_txn(name, now_ms=now_ms)
        )
        return wire.KeepAliveTxnResponse(already_committed=committed)
