"""ClusterService's questions; its changes are in ``changes``, and in ``passing``.

Questions are answered from this instance's copy of the metadata. The controller's own copy shows
what it has decided, so there is one path for both.
"""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from semel.coordinator.v1 import acls_pb2 as acls_wire
from semel.coordinator.v1 import cluster_pb2 as wire
from semel.coordinator.v1 import quotas_pb2 as quotas_wire
from semel_common.errors import CoordinatorNotAvailableError, InvalidGroupIdError, SemelError
from semel_common.wire import methods
from semel_common.wire.status import to_value
from semel_coordinator.controller.loops.instance_liveness import Liveness
from semel_coordinator.controller.machine import CONTROLLER, InstanceKey
from semel_coordinator.controller.machine.topic_names import check_topic_name
from semel_coordinator.controller.rpc.current_topics import TopicsNow
from semel_coordinator.controller.rpc.metadata_messages import (
    configs_to_wire,
    instance_to_wire,
    led_partitions,
    missing_topic,
    topic_to_wire,
)
from semel_coordinator.controller.rpc.metadata_versions import VersionGate
from semel_coordinator.controller.rpc.request_checks import (
    check_describe_client_quotas,
    check_describe_configs,
    check_find_coordinator,
    check_metadata,
)
from semel_coordinator.coordinator_machine import CoordinatorMachine, CoordinatorRecord
from semel_runtime.access.access_serde import (
    acl_after,
    acls_to_wire,
    filter_from_wire,
    page_token_of,
    quotas_to_wire,
)
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.controller_note import mark_to_wire
from semel_runtime.cluster.metadata_image import ClusterImage, Instance, ServiceRole, Topic
from semel_runtime.cluster.metadata_serde import internal_to_wire, layout_to_wire, shortage_to_wire
from semel_runtime.cluster.topic_options import ConfigOption, options_named
from semel_runtime.machine import Result
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.form_checks import require_name
from semel_runtime.server.pages import Page, check_token

T = TypeVar("T")

_RULES_PER_TURN = 1_000
"""Access rules that are looked at before other callers have their turn."""
_USER = "="
"""Stands before the name of a user in a page token: the token of no user is not that of no page."""


class ClusterService:
    """Answers what ClusterService is asked."""

    def __init__(
        self,
        runner: Runner[CoordinatorRecord],
        machine: CoordinatorMachine,
        *,
        versions: VersionGate,
        liveness: Liveness,
        controller_mark: Callable[[], JournalMark | None],
        topics_now: TopicsNow,
    ) -> None:
        """Answer from the machine's copy of the metadata."""
        self._topics_now = topics_now
        self._controller_mark = controller_mark
        self._runner = runner
        self._cluster = machine.cluster
        self._controller = machine.controller
        self._versions = versions
        self._liveness = liveness
        self._listed: tuple[ClusterImage, wire.MetadataResponse] | None = None
        self._written: dict[str, tuple[Topic, wire.Topic]] = {}
        """Each topic of that image with its message, by id."""

    def register(self, handlers: Handlers) -> None:
        """Register a handler for each question."""
        handlers.add(methods.METADATA, self.metadata)
        handlers.add(methods.FIND_COORDINATOR, self.find_coordinator)
        handlers.add(methods.DESCRIBE_CLUSTER, self.describe_cluster)
        handlers.add(methods.DESCRIBE_CONFIGS, self.describe_configs)
        handlers.add(methods.DESCRIBE_ACLS, self.describe_acls)
        handlers.add(methods.DESCRIBE_CLIENT_QUOTAS, self.describe_client_quotas)

    # -- questions -----------------------------------------------------------------------------

    async def metadata(self, request: wire.MetadataRequest, call: Call) -> wire.MetadataResponse:
        """Answer instances and topics, perhaps only once there is something new."""
        check_metadata(request)
        if request.known_version:
            wait_ms = min(request.max_wait_ms, call.remaining_ms(request.max_wait_ms))
            await self._versions.wait(known_version=request.known_version, max_wait_ms=wait_ms)
        if not request.from_controller:
            return await self._read(lambda: self._metadata(request, call.origin.listener))
        topics = await self._topics_now.find(request.topics, request.topic_ids, call)
        request.ClearField("topics")
        request.ClearField("topic_ids")
        response = await self._read(lambda: self._metadata(request, call.origin.listener))
        response.topics.extend(topics)
        return response

    async def find_coordinator(
        self, request: wire.FindCoordinatorRequest, call: Call
    ) -> wire.FindCoordinatorResponse:
        """Answer the coordinator of each key."""
        check_find_coordinator(request)
        is_group = request.type == wire.COORDINATOR_TYPE_GROUP
        locate = self._locate_group if is_group else self._locate_transactional_id
        return await self._read(
            lambda: wire.FindCoordinatorResponse(
                coordinators=[_location(key, locate, call.origin.listener) for key in request.keys]
            )
        )

    async def describe_cluster(
        self, _request: wire.DescribeClusterRequest, call: Call
    ) -> wire.DescribeClusterResponse:
        """Describe the cluster for operators."""
        return await self._read(lambda: self._describe_cluster(call.origin.listener))

    async def describe_configs(
        self, request: wire.DescribeConfigsRequest, _call: Call
    ) -> wire.DescribeConfigsResponse:
        """Answer the options of topics; raises InvalidConfigError for a key that there is not."""
        check_describe_configs(request)
        options = options_named(request.keys)
        return await self._read(
            lambda: wire.DescribeConfigsResponse(
                topics=[self._configs_of(name, options) for name in request.topics]
            )
        )

    async def describe_acls(
        self, request: acls_wire.DescribeAclsRequest, _call: Call
    ) -> acls_wire.DescribeAclsResponse:
        """Answer the access rules that a filter matches."""
        wanted = filter_from_wire(request.filter)
        page, after = Page(request.limit), acl_after(request.page_token)
        acls = (await self._read(self._image)).acls
        response = acls_wire.DescribeAclsResponse()
        for turn, acl in enumerate(acls[0 if after is None else bisect_right(acls, after) :], 1):
            if wanted.matches(acl):
                (entry,) = acls_to_wire((acl,))
                if not page.takes(entry):
                    response.next_page_token = page_token_of(response.acls[-1])
                    break
                response.acls.append(entry)
            if not turn % _RULES_PER_TURN:
                await asyncio.sleep(0)
        return response

    async def describe_client_quotas(
        self, request: quotas_wire.DescribeClientQuotasRequest, _call: Call
    ) -> quotas_wire.DescribeClientQuotasResponse:
        """Answer the limits of users."""
        check_describe_client_quotas(request)
        users = set(request.users)
        page, token = Page(request.limit), check_token(request.page_token)
        found = (await self._read(self._image)).client_quotas
        response = quotas_wire.DescribeClientQuotasResponse()
        for entry in quotas_to_wire(each for each in found if not users or each.user in users):
            if f"{_USER}{entry.user}" <= token:
                continue
            if not page.takes(entry):
                response.next_page_token = f"{_USER}{response.client_quotas[-1].user}"
                break
            response.client_quotas.append(entry)
        return response

    # -- answers -------------------------------------------------------------------------------

    async def _read(self, question: Callable[[], T]) -> T:
        return await self._runner.run(lambda: Result(question()))

    def _image(self) -> ClusterImage:
        image = self._cluster.image
        if image is None:
            raise CoordinatorNotAvailableError(
                "this coordinator has not heard from the controller yet"
            )
        return image

    def _metadata(self, request: wire.MetadataRequest, listener: str) -> wire.MetadataResponse:
        image = self._image()
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
            response.topics.extend(self._topic_identified(each) for each in request.topic_ids)
        return response

    def _list_topics(
        self, image: ClusterImage, request: wire.MetadataRequest, response: wire.MetadataResponse
    ) -> None:
        """Add all topics, or a page of them."""
        listed = self._all_topics(image)
        if not request.limit:
            response.MergeFrom(listed)
            return
        page, token = Page(request.limit), check_token(request.page_token)
        behind = (each for each in listed.topics if each.name > token)
        for topic in sorted(behind, key=lambda each: each.name):
            if not page.takes(topic):
                response.next_page_token = response.topics[-1].name
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

    def _configs_of(self, name: str, options: list[ConfigOption]) -> wire.TopicConfigs:
        try:
            check_topic_name(name)
            return configs_to_wire(self._cluster.topic_by_name(name), options)
        except SemelError as error:
            return wire.TopicConfigs(name=name, error=to_value(error))

    def _topic_identified(self, topic_id: str) -> wire.Topic:
        try:
            return topic_to_wire(self._cluster.topic_by_id(topic_id))
        except SemelError as error:
            return missing_topic(error, topic_id=topic_id)

    def _locate_group(self, group_id: str) -> Instance:
        if not group_id:
            raise InvalidGroupIdError("a group id is empty")
        require_name("keys", group_id)
        instance_id = self._cluster.group_coordinator_for(group_id)
        return self._instance(ServiceRole.GROUP_COORDINATOR, instance_id)

    def _locate_transactional_id(self, transactional_id: str) -> Instance:
        require_name("keys", transactional_id)
        instance_id = self._cluster.coordinator_for(transactional_id)
        return self._instance(ServiceRole.COORDINATOR, instance_id)

    def _instance(self, role: ServiceRole, instance_id: int) -> Instance:
        instance = self._cluster.instance(role, instance_id)
        if instance is None:
            raise CoordinatorNotAvailableError(
                f"{InstanceKey(role, instance_id)} has not registered yet"
            )
        return instance

    def _describe_cluster(self, listener: str) -> wire.DescribeClusterResponse:
        image = self._image()
        led = led_partitions(self._cluster, image)
        return wire.DescribeClusterResponse(
            cluster_id=image.cluster_id,
            version=image.version,
            layout=layout_to_wire(image.layout),
            instances=[self._describe(instance, listener, led) for instance in image.instances],
            topic_count=len(image.topics),
            partition_count=sum(len(topic.partitions) for topic in image.topics),
        )

    def _describe(
        self, instance: Instance, listener: str, led: Counter[InstanceKey]
    ) -> wire.InstanceDescription:
        key = InstanceKey(instance.role, instance.instance_id)
        shortage = self._liveness.shortage_of(key)
        return wire.InstanceDescription(
            instance=instance_to_wire(instance, listener=listener),
            claim_epoch=self._controller.claim_epoch_of(key),
            last_registered_ms=self._liveness.last_registered_ms(key),
            leader_partitions=led[key],
            controller=key == CONTROLLER,
            disk_shortage=None if shortage is None else shortage_to_wire(shortage),
        )


def _location(
    key: str, locate: Callable[[str], Instance], listener: str
) -> wire.CoordinatorLocation:
    try:
        instance = locate(key)
        if instance.listener(listener) is None:
            raise CoordinatorNotAvailableError(
                f"{InstanceKey(instance.role, instance.instance_id)} has not registered a listener"
                f" {listener!r}"
            )
    except SemelError as error:
        return wire.CoordinatorLocation(key=key, error=to_value(error))
    return wire.CoordinatorLocation(key=key, instance=instance_to_wire(instance, listener=listener))
