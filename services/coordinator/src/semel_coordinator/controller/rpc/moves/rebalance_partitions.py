"""RebalancePartitions: moves begin after which every instance leads its share."""

from dataclasses import dataclass

from semel.coordinator.v1 import moves_pb2 as wire
from semel_coordinator.controller.machine import Move
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_coordinator.controller.rpc.moves.reassignment_results import reassignment_result
from semel_runtime.server.calls import Call


@dataclass(frozen=True, slots=True)
class Rebalancer:
    """Answers RebalancePartitions."""

    parts: ChangeParts

    async def rebalance_partitions(
        self, request: wire.RebalancePartitionsRequest, _call: Call
    ) -> wire.RebalancePartitionsResponse:
        """Begin the moves after which every instance leads its share."""
        moves: list[Move] = await self.parts.runner.run(
            lambda: self.parts.machine.rebalance_partitions(validate_only=request.validate_only),
            privileged=True,
        )
        return wire.RebalancePartitionsResponse(
            partitions=[reassignment_result(*move) for move in moves]
        )
