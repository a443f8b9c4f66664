"""CompletePartitionReassignment: an instance has taken a partition over, and becomes its leader."""

from dataclasses import dataclass

from semel.coordinator.v1 import moves_pb2 as wire
from semel_common.wire.messages.request_bounds import ID_LENGTH_MAX
from semel_coordinator.controller.machine import Completion
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT32_MAX, INT64_MAX, require_int, require_name


@dataclass(frozen=True, slots=True)
class ReassignmentCompleter:
    """Answers CompletePartitionReassignment."""

    parts: ChangeParts

    async def complete_partition_reassignment(
        self, request: wire.CompletePartitionReassignmentRequest, _call: Call
    ) -> wire.CompletePartitionReassignmentResponse:
        """Make the broker the leader that has taken a partition over."""
        completion = _completion(request)
        await self.parts.runner.run(
            lambda: self.parts.machine.complete_partition_reassignment(completion), privileged=True
        )
        return wire.CompletePartitionReassignmentResponse()


def _completion(request: wire.CompletePartitionReassignmentRequest) -> Completion:
    """Read a request; each error names the field."""
    return Completion(
        topic_id=require_name("topic_id", request.topic_id, length_max=ID_LENGTH_MAX),
        partition=require_int("partition", request.partition, maximum=INT32_MAX),
        leader_epoch=require_int("leader_epoch", request.leader_epoch, maximum=INT64_MAX - 1),
        broker_id=require_int("broker_id", request.broker_id, maximum=INT32_MAX),
    )
