"""DeleteTopics: topics are deleted, by name or by id."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.wire.messages.request_bounds import NAMES_MAX
from semel_common.wire.status import to_value
from semel_coordinator.controller.machine.records import ControllerRecord
from semel_coordinator.controller.rpc.change_parts import ChangeParts, at_once
from semel_coordinator.controller.rpc.field_checks import require_ids
from semel_runtime.cluster.metadata_image import Topic
from semel_runtime.machine import Result
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count

_Decide = Callable[[], Result[Topic, ControllerRecord]]


@dataclass(frozen=True, slots=True)
class TopicDeleter:
    """Answers DeleteTopics."""

    parts: ChangeParts

    async def delete_topics(
        self, request: wire.DeleteTopicsRequest, _call: Call
    ) -> wire.DeleteTopicsResponse:
        """Delete topics; all of them are decided at once, so they share a commit."""
        check_delete_topics(request)
        by_name = map(self._delete_by_name, request.topics)
        by_id = map(self._delete_by_id, request.topic_ids)
        return wire.DeleteTopicsResponse(topics=await at_once(chain(by_name, by_id)))

    async def _delete_by_name(self, name: str) -> wire.DeleteTopicResult:
        try:
            deleted = await self._delete(lambda: self.parts.machine.delete_topic_by_name(name))
        except SemelError as error:
            return wire.DeleteTopicResult(name=name, error=to_value(error))
        return wire.DeleteTopicResult(name=deleted.name, topic_id=deleted.topic_id)

    async def _delete_by_id(self, topic_id: str) -> wire.DeleteTopicResult:
        try:
            deleted = await self._delete(lambda: self.parts.machine.delete_topic_by_id(topic_id))
        except SemelError as error:
            return wire.DeleteTopicResult(topic_id=topic_id, error=to_value(error))
        return wire.DeleteTopicResult(name=deleted.name, topic_id=deleted.topic_id)

    async def _delete(self, decide: _Decide) -> Topic:
        # A full disk must not keep an operator from deleting.
        return await self.parts.runner.run(decide, privileged=True)


def check_delete_topics(request: wire.DeleteTopicsRequest) -> None:
    """Check the form of a request."""
    require_count("topics", request.topics, maximum=NAMES_MAX)
    require_count("topic_ids", request.topic_ids, maximum=NAMES_MAX)
    require_ids("topic_ids", request.topic_ids)
    if not request.topics and not request.topic_ids:
        raise InvalidRequestError("topics and topic_ids are both empty", field="topics")
