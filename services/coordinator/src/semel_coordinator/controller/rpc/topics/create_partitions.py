"""CreatePartitions: topics get more partitions."""

from dataclasses import dataclass

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire.status import to_value
from semel_coordinator.controller.rpc.change_parts import ChangeParts, at_once
from semel_coordinator.controller.rpc.field_checks import require_topics_once
from semel_runtime.journal.contract import Reserve
from semel_runtime.server.calls import Call


@dataclass(frozen=True, slots=True)
class PartitionCreator:
    """Answers CreatePartitions."""

    parts: ChangeParts

    async def create_partitions(
        self, request: wire.CreatePartitionsRequest, _call: Call
    ) -> wire.CreatePartitionsResponse:
        """Give topics more partitions; all of them are decided at once."""
        require_topics_once([topic.name for topic in request.topics])
        results = await at_once(
            self._create(topic, validate_only=request.validate_only) for topic in request.topics
        )
        return wire.CreatePartitionsResponse(topics=results)

    async def _create(
        self, more: wire.MorePartitions, *, validate_only: bool
    ) -> wire.CreatePartitionsResult:
        try:
            topic = await self.parts.runner.run(
                lambda: self.parts.machine.create_partitions(
                    more.name, more.partitions, validate_only=validate_only
                ),
                may_use=Reserve.NONE,
            )
        except SemelError as error:
            return wire.CreatePartitionsResult(name=more.name, error=to_value(error))
        return wire.CreatePartitionsResult(name=topic.name, partitions=len(topic.partitions))
