"""EndTxn: a producer commits or aborts its transaction."""

from dataclasses import dataclass

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.machine import Outcome, TransactionKey
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.participant_names import has_names
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_coordinator.transactions.rpc.unknown_epochs import log_never_given
from semel_coordinator.transactions.rpc.wait_for_markers import wait_for_markers
from semel_runtime.server.calls import Call


@dataclass(frozen=True, slots=True)
class TransactionEnder:
    """Answers EndTxn."""

    parts: ServiceParts

    async def end_txn(self, request: wire.EndTxnRequest, call: Call) -> wire.EndTxnResponse:
        """Decide a transaction."""
        parts, machine = self.parts, self.parts.machine
        parts.claim.check()
        transactional_id = request_fields.transactional_id(request.transactional_id, parts.limits)
        key = request_fields.key(request.producer_id, request.producer_epoch)
        wait = request_fields.wait_for(request.wait)
        commit = request_fields.is_commit(request.result)
        if has_names(request.participants.topics):
            # The participants in the repeat of a decided request do not count.
            missing_ok = not commit or self._is_past(key)
            await parts.names.give_ids([request.participants.topics], call, missing_ok=missing_ok)
        participants = request_fields.participants(request, parts.limits, commit=commit)
        self._log_if_never_given(key)
        now_ms = parts.clock.now_ms()
        next_key = await parts.runner.run(
            lambda: machine.end_txn(
                transactional_id,
                key,
                commit=commit,
                participants=participants,
                traceparent=request_fields.traceparent(call),
                now_ms=now_ms,
            )
        )
        if wait == wire.WAIT_FOR_COMPLETE:
            outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
            facts = {"outcome": outcome.value, "next_epoch": next_key.producer_epoch}
            await wait_for_markers(
                parts, lambda: machine.markers.is_complete(key), key.producer_id, call, facts
            )
        return wire.EndTxnResponse(
            producer_id=next_key.producer_id, producer_epoch=next_key.producer_epoch
        )

    def _is_past(self, key: TransactionKey) -> bool:
        current_epoch = self.parts.machine.current_epoch(key.producer_id)
        return current_epoch is not None and key.producer_epoch < current_epoch

    def _log_if_never_given(self, key: TransactionKey) -> None:
        current_epoch = self.parts.machine.current_epoch(key.producer_id)
        if current_epoch is not None and key.producer_epoch > current_epoch:
            log_never_given(key, "EndTxn", current_epoch)
