"""The result of a move in responses."""

from semel.coordinator.v1 import moves_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire.status import to_value
from semel_coordinator.controller.machine import Reassigned
from semel_runtime.cluster.metadata_image import PartitionLeader


def reassignment_result(
    topic: str, partition: int, answer: Reassigned
) -> wire.PartitionReassignmentResult:
    """Return the leader of a partition and the target of its move, or the error."""
    match answer:
        case PartitionLeader():
            return wire.PartitionReassignmentResult(
                topic=topic,
                partition=partition,
                leader_id=answer.leader_id,
                moving_to=answer.moving_to,
            )
        case SemelError():
            return wire.PartitionReassignmentResult(
                topic=topic, partition=partition, error=to_value(answer)
            )
