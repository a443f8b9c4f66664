"""Metadata: the instances and the topics of the cluster, perhaps only once they have changed."""

from collections.abc import Callable

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.wire.messages.request_bounds import NAMES_MAX
from semel_coordinator.controller.machine.topic_names import check_topic_name
from semel_coordinator.controller.rpc.current_topics import TopicsNow
from semel_coordinator.controller.rpc.field_checks import require_ids
from semel_coordinator.controller.rpc.metadata_messages import (
    instance_to_wire,
    missing_topic,
    topic_to_wire,
)
from semel_coordinator.controller.rpc.metadata_reader import MetadataReader
from semel_coordinator.controller.rpc.metadata_versions import VersionGate
from semel_runtime.access.access_serde import acls_to_wire, quotas_to_wire
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.controller_note import mark_to_wire
from semel_runtime.cluster.metadata_image import ClusterImage, Topic
from semel_runtime.cluster.metadata_serde import internal_to_wire, layout_to_wire
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT64_MAX, require_count, require_int
from semel_runtime.server.pages import Page, PageTokens, refuse_token

MAX_WAIT_MS_MAX = 300_000
_TOKENS = PageTokens("Metadata")


class MetadataTeller:
    """Answers Metadata."""

    def __init__(
        self,
        reader: MetadataReader,
        *,
        versions: VersionGate,
        controller_mark: Callable[[], JournalMark | None],
        topics_now: TopicsNow,
    ) -> None:
        self._reader = reader
        self._cluster = reader.cluster
        self._versions = versions
        self._controller_mark = controller_mark
        self._topics_now = topics_now
        self._listed: tuple[ClusterImage, wire.MetadataResponse] | None = None
        self._written: dict[str, tuple[Topic, wire.Topic]] = {}
        """Each topic of that image with its message, by id."""

    async def metadata(self, request: wire.MetadataRequest, call: Call) -> wire.MetadataResponse:
        """Answer instances and topics, perhaps only once there is something new."""
        check_metadata(request)
        if request.known_version:
            wait_ms = min(request.max_wait_ms, call.remaining_ms(request.max_wait_ms))
            await self._versions.wait(known_version=request.known_version, max_wait_ms=wait_ms)
        if not request.from_controller:
            return await self._reader.read(lambda: self._response(request, call.origin.listener))
        topics = await self._topics_now.find(request.topics, request.topic_ids, call)
        request.ClearField("topics")
        request.ClearField("topic_ids")
        response = await self._reader.read(lambda: self._response(request, call.origin.listener))
        response.topics.extend(topics)
        return response

    def _response(self, request: wire.MetadataRequest, listener: str) -> wire.MetadataResponse:
        image = self._reader.image()
        response = wire.MetadataResponse(
            cluster_id=image.cluster_id,
            version=image.version,
            instances=[
                instance_to_wire(instance, listener=listener, all_listeners=request.all_listeners)
                for instance in image.instances
            ],
            layout=layout_to_wire(image.layout),
            internal_partitions=map(internal_to_wire, image.internal_partitions),
        )
        mark = self._controller_mark() if request.all_listeners else None
        if mark is not None:
            response.controller.CopyFrom(mark_to_wire(mark))
        if request.access_rules:
            response.acls.extend(acls_to_wire(image.acls))
            response.client_quotas.extend(quotas_to_wire(image.client_quotas))
        if request.all_topics:
            self._list_topics(image, request, response)
        else:
            response.topics.extend(self._topic_named(name) for name in request.topics)
            response.topics.extend(self._topic_with_id(topic_id) for topic_id in request.topic_ids)
        return response

    def _list_topics(
        self, image: ClusterImage, request: wire.MetadataRequest, response: wire.MetadataResponse
    ) -> None:
        """Add all topics, or a page of them."""
        listed = self._all_topics(image)
        if not request.limit:
            response.MergeFrom(listed)
            return
        page, after = Page(request.limit), _TOKENS.key(request.page_token) or ""
        behind = (topic for topic in listed.topics if topic.name > after)
        for topic in sorted(behind, key=lambda topic: topic.name):
            if not page.takes(topic):
                response.next_page_token = _TOKENS.after(response.topics[-1].name)
                return
            response.topics.append(topic)

    def _all_topics(self, image: ClusterImage) -> wire.MetadataResponse:
        """Return a response with all topics, made once for each image: every instance asks.

        A topic is written when it is new: that of the last image is the same object.
        """
        if self._listed is None or self._listed[0] is not image:
            known = self._written
            self._written = {
                topic.topic_id: known[topic.topic_id]
                if topic.topic_id in known and known[topic.topic_id][0] is topic
                else (topic, topic_to_wire(topic))
                for topic in image.topics
            }
            written = (message for _, message in self._written.values())
            self._listed = (image, wire.MetadataResponse(topics=written))
        return self._listed[1]

    def _topic_named(self, name: str) -> wire.Topic:
        try:
            check_topic_name(name)
            return topic_to_wire(self._cluster.topic_by_name(name))
        except SemelError as error:
            return missing_topic(error, name=name)

    def _topic_with_id(self, topic_id: str) -> wire.Topic:
        try:
            return topic_to_wire(self._cluster.topic_by_id(topic_id))
        except SemelError as error:
            return missing_topic(error, topic_id=topic_id)


def check_metadata(request: wire.MetadataRequest) -> None:
    """Check the form of a request."""
    require_count("topics", request.topics, maximum=NAMES_MAX)
    require_count("topic_ids", request.topic_ids, maximum=NAMES_MAX)
    if not (request.all_topics and request.limit):
        refuse_token(request.page_token, unless="all_topics and limit")
    _TOKENS.key(request.page_token)
    require_ids("topic_ids", request.topic_ids)
    require_int("known_version", request.known_version, maximum=INT64_MAX)
    require_int("max_wait_ms", request.max_wait_ms, maximum=MAX_WAIT_MS_MAX)
    if request.from_controller and request.all_topics:
        raise InvalidRequestError(
            "from_controller and all_topics are both set: name the topics, or leave from_controller"
            " out",
            field="from_controller",
        )
