"""IncrementalAlterConfigs: options of topics change."""

from dataclasses import dataclass

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire.status import to_value
from semel_coordinator.controller.rpc.change_parts import ChangeParts, at_once
from semel_coordinator.controller.rpc.field_checks import require_topics_once
from semel_runtime.server.calls import Call


@dataclass(frozen=True, slots=True)
class ConfigAlterer:
    """Answers IncrementalAlterConfigs."""

    parts: ChangeParts

    async def incremental_alter_configs(
        self, request: wire.IncrementalAlterConfigsRequest, _call: Call
    ) -> wire.IncrementalAlterConfigsResponse:
        """Change options of topics: all changes of a topic, or none of them."""
        require_topics_once([topic.name for topic in request.topics])
        results = await at_once(
            self._alter(change, validate_only=request.validate_only) for change in request.topics
        )
        return wire.IncrementalAlterConfigsResponse(topics=results)

    async def _alter(
        self, change: wire.TopicConfigChange, *, validate_only: bool
    ) -> wire.AlterConfigsResult:
        try:
            # A full disk must not keep an operator from shortening the retention.
            altered = await self.parts.runner.run(
                lambda: self.parts.machine.incremental_alter_configs(
                    change.name,
                    set_=dict(change.set),
                    reset=tuple(change.reset),
                    validate_only=validate_only,
                ),
                privileged=True,
            )
        except SemelError as error:
            return wire.AlterConfigsResult(name=change.name, error=to_value(error))
        return wire.AlterConfigsResult(name=altered.name, configs=dict(altered.configs))
