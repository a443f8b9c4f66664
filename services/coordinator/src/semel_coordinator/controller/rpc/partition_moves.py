"""Where partitions are led, as the controller decides it; ``passing`` is everybody else's part."""

from semel.coordinator.v1 import cluster_pb2 as cluster_wire
from semel.coordinator.v1 import moves_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire import methods
from semel_common.wire.status import to_value
from semel_coordinator.controller.machine import ControllerMachine, Move, Reassigned, Reassignment
from semel_coordinator.controller.rpc.request_checks import (
    check_alter_partition_reassignments,
    read_completion,
    read_decommissioned,
)
from semel_coordinator.coordinator_machine import CoordinatorRecord
from semel_runtime.cluster.metadata_image import PartitionLeader
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call, Handlers


class PartitionMoves:
    """Moves partitions: this instance is the controller."""

    def __init__(self, runner: Runner[CoordinatorRecord], machine: ControllerMachine) -> None:
        """Work on a machine that has a cluster."""
        self._runner = runner
        self._machine = machine

    def register_handlers(self, handlers: Handlers) -> None:
        """Register a handler for each call."""
        handlers.add(methods.ALTER_PARTITION_REASSIGNMENTS, self.alter_partition_reassignments)
        handlers.add(methods.REBALANCE_PARTITIONS, self.rebalance_partitions)
        handlers.add(methods.DECOMMISSION_INSTANCE, self.decommission_instance)
        handlers.add(methods.COMPLETE_PARTITION_REASSIGNMENT, self.complete_partition_reassignment)

    async def alter_partition_reassignments(
        self, request: wire.AlterPartitionReassignmentsRequest, _call: Call
    ) -> wire.AlterPartitionReassignmentsResponse:
        """Move partitions, or give moves up, all of them in one commit."""
        check_alter_partition_reassignments(request)
        wanted = [_wanted(partition) for partition in request.partitions]
        # A full disk of the controller must not keep an operator from relieving a broker's.
        answers = await self._runner.run(
            lambda: self._machine.alter_partition_reassignments(
                wanted, validate_only=request.validate_only
            ),
            privileged=True,
        )
        return wire.AlterPartitionReassignmentsResponse(
            partitions=[
                _result(each.topic, each.partition, answer)
                for each, answer in zip(wanted, answers, strict=True)
            ]
        )

    async def rebalance_partitions(
        self, request: wire.RebalancePartitionsRequest, _call: Call
    ) -> wire.RebalancePartitionsResponse:
        """Begin the moves after which every instance leads its share."""
        moves: list[Move] = await self._runner.run(
            lambda: self._machine.rebalance_partitions(validate_only=request.validate_only),
            privileged=True,
        )
        return wire.RebalancePartitionsResponse(partitions=[_result(*move) for move in moves])

    async def decommission_instance(
        self, request: cluster_wire.DecommissionInstanceRequest, _call: Call
    ) -> cluster_wire.DecommissionInstanceResponse:
        """Close an instance to partitions, or open it again."""
        key = read_decommissioned(request)
        left = await self._runner.run(
            lambda: self._machine.decommission_instance(key, to=request.decommissioned),
            privileged=True,
        )
        return cluster_wire.DecommissionInstanceResponse(leader_partitions=left)

    async def complete_partition_reassignment(
        self, request: wire.CompletePartitionReassignmentRequest, _call: Call
    ) -> wire.CompletePartitionReassignmentResponse:
        """Make the broker the leader that has taken a partition over."""
        completion = read_completion(request)
        await self._runner.run(
            lambda: self._machine.complete_partition_reassignment(completion), privileged=True
        )
        return wire.CompletePartitionReassignmentResponse()


def _wanted(wanted: wire.PartitionReassignment) -> Reassignment:
    return Reassignment(
        topic=wanted.topic,
        partition=wanted.partition,
        broker_id=wanted.broker_id if wanted.HasField("broker_id") else None,
    )


def _result(topic: str, partition: int, answer: Reassigned) -> wire.PartitionReassignmentResult:
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
