"""AlterPartitionReassignments: an operator moves partitions, or gives moves up."""

from collections import Counter
from dataclasses import dataclass

from semel.coordinator.v1 import moves_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import REASSIGNMENTS_MAX
from semel_coordinator.controller.machine import Reassignment
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_coordinator.controller.rpc.moves.reassignment_results import reassignment_result
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, shown


@dataclass(frozen=True, slots=True)
class Reassigner:
    """Answers AlterPartitionReassignments."""

    parts: ChangeParts

    async def alter_partition_reassignments(
        self, request: wire.AlterPartitionReassignmentsRequest, _call: Call
    ) -> wire.AlterPartitionReassignmentsResponse:
        """Move partitions, or give moves up, all of them in one commit."""
        _check(request)
        wanted = [_wanted(partition) for partition in request.partitions]
        # A full disk of the controller must not keep an operator from relieving a broker's.
        answers = await self.parts.runner.run(
            lambda: self.parts.machine.alter_partition_reassignments(
                wanted, validate_only=request.validate_only
            ),
            privileged=True,
        )
        return wire.AlterPartitionReassignmentsResponse(
            partitions=[
                reassignment_result(place.topic, place.partition, answer)
                for place, answer in zip(wanted, answers, strict=True)
            ]
        )


def _check(
    request: wire.AlterPartitionReassignmentsRequest,
) -> None:
    """Check the form of a request, except its partitions: each has an answer of its own."""
    require_count("partitions", request.partitions, minimum=1, maximum=REASSIGNMENTS_MAX)
    named = Counter((place.topic, place.partition) for place in request.partitions)
    (topic, partition), count = named.most_common(1)[0]
    if count > 1:
        raise InvalidRequestError(
            f"partitions names {shown(topic)!r} {partition} {count} times", field="partitions"
        )


def _wanted(wanted: wire.PartitionReassignment) -> Reassignment:
    return Reassignment(
        topic=wanted.topic,
        partition=wanted.partition,
        broker_id=wanted.broker_id if wanted.HasField("broker_id") else None,
    )
