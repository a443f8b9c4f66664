"""CreateTopics: new topics, with their partitions placed on the brokers."""

from collections import Counter
from dataclasses import dataclass

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.wire.messages.request_bounds import NAMES_MAX
from semel_common.wire.status import to_value
from semel_coordinator.controller.machine import NewTopic
from semel_coordinator.controller.rpc.change_parts import ChangeParts, at_once
from semel_coordinator.controller.rpc.new_ids import new_id
from semel_runtime.journal.contract import Reserve
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count


@dataclass(frozen=True, slots=True)
class TopicCreator:
    """Answers CreateTopics."""

    parts: ChangeParts

    async def create_topics(
        self, request: wire.CreateTopicsRequest, _call: Call
    ) -> wire.CreateTopicsResponse:
        """Create topics; all of them are decided at once, so they share a commit."""
        check_create_topics(request)
        named = Counter(topic.name for topic in request.topics)
        results = await at_once(
            self._create(topic, repeated=named[topic.name] > 1, validate_only=request.validate_only)
            for topic in request.topics
        )
        return wire.CreateTopicsResponse(topics=results)

    async def _create(
        self, topic: wire.NewTopic, *, repeated: bool, validate_only: bool
    ) -> wire.CreateTopicResult:
        new = NewTopic(
            name=topic.name,
            topic_id=new_id(self.parts.random),
            partition_count=topic.partitions,
            configs=tuple(topic.configs.items()),
        )
        try:
            if repeated:
                raise InvalidRequestError(f"topic {topic.name!r} is in this request more than once")
            created = await self.parts.runner.run(
                lambda: self.parts.machine.create_topic(new, validate_only=validate_only),
                may_use=Reserve.NONE,
            )
        except SemelError as error:
            return wire.CreateTopicResult(name=topic.name, error=to_value(error))
        return wire.CreateTopicResult(
            name=created.name,
            topic_id="" if validate_only else created.topic_id,
            partitions=len(created.partitions),
        )


def check_create_topics(request: wire.CreateTopicsRequest) -> None:
    """Check the form of a request, except its topics: each topic has an answer of its own."""
    require_count("topics", request.topics, minimum=1, maximum=NAMES_MAX)
