"""EndJointTxn: the owner of a joint transaction decides for all its writers."""

from dataclasses import dataclass

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_coordinator.transactions.machine import (
    EndJointTxn,
    Outcome,
    TransactionKey,
    TransactionLimits,
    in_order,
)
from semel_coordinator.transactions.machine.state.entities import ParticipantSet
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.joint.joint_names import joint_name
from semel_coordinator.transactions.rpc.participant_messages import participants_from_wire
from semel_coordinator.transactions.rpc.participant_names import has_names
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_coordinator.transactions.rpc.wait_for_markers import wait_for_markers
from semel_runtime.machine import Result
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int, require_name

_RESULTS = {
    Outcome.COMMITTED: participants_pb2.TRANSACTION_RESULT_COMMIT,
    Outcome.ABORTED: participants_pb2.TRANSACTION_RESULT_ABORT,
}


@dataclass(frozen=True, slots=True)
class JointEnder:
    """Answers EndJointTxn."""

    parts: ServiceParts

    async def end_joint_txn(
        self, request: wire.EndJointTxnRequest, call: Call
    ) -> wire.EndJointTxnResponse:
        """Decide for all writers."""
        parts = self.parts
        parts.claim.check()
        wait = request_fields.wait_for(request.wait)
        named = [
            writer.participants.topics
            for writer in request.writers
            if has_names(writer.participants.topics)
        ]
        if named:
            is_abort = request.result == participants_pb2.TRANSACTION_RESULT_ABORT
            await parts.names.give_ids(named, call, missing_ok=is_abort)
        end = _end(request, parts.limits, call)
        now_ms = parts.clock.now_ms()
        ended = await parts.runner.run(
            lambda: parts.machine.joint.end_joint_txn(end, now_ms=now_ms)
        )
        if wait == wire.WAIT_FOR_COMPLETE:
            await self._wait(end.name.transactional_id, ended.outcome, call)
        return wire.EndJointTxnResponse(
            result=_RESULTS[ended.outcome],
            already_committed=ended.already_committed,
            repeated_in_run=ended.repeated_in_run,
        )

    async def _wait(self, transactional_id: str, outcome: Outcome, call: Call) -> None:
        """Wait until no writer of the id has a transaction without its markers."""
        machine, facts = self.parts.machine, {"outcome": outcome.value}
        while True:
            producer_id = await self.parts.runner.run(
                lambda: Result(machine.joint.incomplete_writer(transactional_id))
            )
            if producer_id is None:
                return
            epoch = machine.current_epoch(producer_id)
            if epoch is None:
                continue  # It has moved away: the next question about it is refused.
            await wait_for_markers(
                self.parts,
                lambda: machine.markers.is_complete_below(producer_id, epoch),  # noqa: B023 - awaited here
                producer_id,
                call,
                facts,
            )


def _end(request: wire.EndJointTxnRequest, limits: TransactionLimits, call: Call) -> EndJointTxn:
    """Read an EndJointTxn."""
    commit = request_fields.is_commit(request.result)
    require_count("writers", request.writers, maximum=limits.joint_writers_max)
    writers: dict[TransactionKey, ParticipantSet] = {}
    for index, writer in enumerate(request.writers):
        field = f"writers[{index}]"
        key = TransactionKey(
            require_int(f"{field}.producer_id", writer.producer_id, minimum=1),
            require_int(f"{field}.producer_epoch", writer.producer_epoch),
        )
        if key in writers:
            raise InvalidRequestError(
                f"{field} is named twice: producer id {key.producer_id}", field=field
            )
        found = participants_from_wire(f"{field}.participants", writer.participants, limits)
        require_count(f"{field}.participants", found, maximum=limits.participants_max)
        writers[key] = in_order(found)
    return EndJointTxn(
        name=joint_name(request.transaction, limits),
        commit=commit,
        writers=writers,
        end_id=require_name("end_id", request.end_id, length_max=limits.joint_name_length_max),
        traceparent=request_fields.traceparent(call),
        principal=str(call.origin.principal),
    )
