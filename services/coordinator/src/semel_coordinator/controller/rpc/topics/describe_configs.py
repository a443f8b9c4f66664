"""DescribeConfigs: the options of topics."""

from dataclasses import dataclass

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire.messages.request_bounds import NAMES_MAX
from semel_common.wire.status import to_value
from semel_coordinator.controller.machine.topic_names import check_topic_name
from semel_coordinator.controller.rpc.metadata_messages import configs_to_wire
from semel_coordinator.controller.rpc.metadata_reader import MetadataReader
from semel_runtime.cluster.topic_options import ConfigOption, options_named
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count


@dataclass(frozen=True, slots=True)
class ConfigDescriber:
    """Answers DescribeConfigs."""

    reader: MetadataReader

    async def describe_configs(
        self, request: wire.DescribeConfigsRequest, _call: Call
    ) -> wire.DescribeConfigsResponse:
        """Answer the options of topics; raises InvalidConfigError for an unknown key."""
        require_count("topics", request.topics, minimum=1, maximum=NAMES_MAX)
        require_count("keys", request.keys, maximum=NAMES_MAX)
        options = options_named(request.keys)
        return await self.reader.read(
            lambda: wire.DescribeConfigsResponse(
                topics=[self._configs_of(name, options) for name in request.topics]
            )
        )

    def _configs_of(self, name: str, options: list[ConfigOption]) -> wire.TopicConfigs:
        try:
            check_topic_name(name)
            return configs_to_wire(self.reader.cluster.topic_by_name(name), options)
        except SemelError as error:
            return wire.TopicConfigs(name=name, error=to_value(error))
