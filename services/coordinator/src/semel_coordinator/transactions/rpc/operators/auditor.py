"""The audit of one coordinator, and the entries that other services bring (NoteAudit)."""

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.message import Message

from semel.coordinator.v1 import history_pb2 as wire
from semel_common.wire import methods
from semel_common.wire.messages.request_bounds import AUDIT_WHAT_MAX, NAME_LENGTH_MAX
from semel_common.wire.methods import Method
from semel_coordinator.transactions.machine import TransactionsMachine, TransactionsRecord
from semel_coordinator.transactions.machine.history.audit_trail import AuditNoted
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.audit.request_audit import AuditedRequest, RequestAudit
from semel_runtime.clock import Clock
from semel_runtime.machine import Result
from semel_runtime.server.calls import Call, Endpoint
from semel_runtime.server.form_checks import require_int, require_name

_AUDITED: tuple[Method[Message, Message], ...] = (
    methods.ABORT_TRANSACTION,
    methods.FENCE_PRODUCER,
    methods.COMPLETE_PREPARED_TXN,
    methods.CREATE_TOPICS,
    methods.DELETE_TOPICS,
    methods.CREATE_PARTITIONS,
    methods.INCREMENTAL_ALTER_CONFIGS,
    methods.CREATE_ACLS,
    methods.DELETE_ACLS,
    methods.ALTER_CLIENT_QUOTAS,
    methods.ALTER_PARTITION_REASSIGNMENTS,
    methods.REBALANCE_PARTITIONS,
    methods.DECOMMISSION_INSTANCE,
)
AUDITED: Mapping[str, str] = {method.path: method.name for method in _AUDITED}
"""The names of the audited RPCs, by path."""


@dataclass(frozen=True, slots=True)
class Auditor:
    """Keeps requests in the journal of this coordinator. Implements ``Trail``."""

    runner: Runs
    machine: TransactionsMachine
    clock: Clock

    def audited(self, endpoint: Endpoint[Message, Message]) -> Endpoint[Message, Message]:
        """Return the endpoint with an audit in front of its handler, if its requests need one."""
        return RequestAudit(self, AUDITED).audited(endpoint)

    async def note(self, request: AuditedRequest) -> int:
        """Keep a request durably; return its number."""
        trail, now_ms = self.machine.audit, self.clock.now_ms()

        def decide() -> Result[int, TransactionsRecord]:
            record = trail.note(
                action=request.action,
                what=request.what,
                principal=request.principal,
                address=request.address,
                operator=request.operator,
                reason=request.reason,
                now_ms=now_ms,
            )
            return Result(record.entries[0].number, (record,))

        # A full disk must not keep an operator from making room.
        return await self.runner.run(decide, privileged=True)

    async def end(self, number: int, end: str) -> None:
        """Keep how a request has ended, with the next commit."""
        trail = self.machine.audit

        def decide() -> Result[None, TransactionsRecord]:
            record: AuditNoted | None = trail.ended(number, end)
            return Result(None) if record is None else Result(None, (record,))

        self.runner.run_lazily(decide, privileged=True)

    async def note_audit(
        self, request: wire.NoteAuditRequest, _call: Call
    ) -> wire.NoteAuditResponse:
        """Answer NoteAudit: keep what another service was asked for, or how that has ended."""
        if request.HasField("number"):
            number = require_int("number", request.number)
            await self.end(number, require_name("end", request.end, length_max=NAME_LENGTH_MAX))
            return wire.NoteAuditResponse(number=number)
        noted = AuditedRequest(
            action=require_name("action", request.action, length_max=NAME_LENGTH_MAX),
            what=_text("what", request.what, length_max=AUDIT_WHAT_MAX),
            principal=require_name("principal", request.principal, length_max=AUDIT_WHAT_MAX),
            address=_text("address", request.address, length_max=NAME_LENGTH_MAX),
            operator=_text("operator", request.operator, length_max=AUDIT_WHAT_MAX),
            reason=_text("reason", request.reason, length_max=AUDIT_WHAT_MAX),
        )
        return wire.NoteAuditResponse(number=await self.note(noted))


def _text(field: str, value: str, *, length_max: int) -> str:
    """Return a text that may be empty, if it is not too long."""
    return require_name(field, value, length_max=length_max) if value else ""
