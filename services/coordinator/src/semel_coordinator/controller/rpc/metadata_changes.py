"""Changes of the metadata, as the controller makes them; ``passing`` is everybody else's part."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from itertools import chain
from random import Random
from typing import TypeVar

from semel.coordinator.v1 import acls_pb2 as acls_wire
from semel.coordinator.v1 import cluster_pb2 as wire
from semel.coordinator.v1 import quotas_pb2 as quotas_wire
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.wire import methods
from semel_common.wire.status import to_value
from semel_coordinator.controller.loops.instance_liveness import Liveness
from semel_coordinator.controller.loops.own_volume import OwnVolume
from semel_coordinator.controller.machine import (
    CONTROLLER,
    ControllerMachine,
    NewTopic,
    QuotaChange,
    Registration,
)
from semel_coordinator.controller.machine.records import ClusterRecord, ControllerRecord
from semel_coordinator.controller.rpc.new_ids import new_id
from semel_coordinator.controller.rpc.partition_moves import PartitionMoves
from semel_coordinator.controller.rpc.request_checks import (
    check_alter_client_quotas,
    check_alter_configs,
    check_create_acls,
    check_create_partitions,
    check_create_topics,
    check_delete_acls,
    check_delete_topics,
    read_registration,
    read_shortage,
)
from semel_coordinator.coordinator_machine import CoordinatorRecord
from semel_runtime.access.access_serde import (
    acls_from_wire,
    acls_to_wire,
    filter_from_wire,
    quotas_to_wire,
)
from semel_runtime.clock import Clock
from semel_runtime.cluster.controller_note import mark_to_wire
from semel_runtime.cluster.metadata_image import Topic
from semel_runtime.cluster.metadata_serde import layout_to_wire
from semel_runtime.journal.contract import DiskShortage, Reserve
from semel_runtime.machine import Result
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call, Handlers

T = TypeVar("T")
Decide = Callable[[], Result[Topic, ControllerRecord]]


class ControllerChanges:
    """Makes the changes: this instance is the controller."""

    def __init__(
        self,
        runner: Runner[CoordinatorRecord],
        machine: ControllerMachine,
        *,
        liveness: Liveness,
        own_volume: OwnVolume,
        clock: Clock,
        random: Random,
    ) -> None:
        """Work on a machine that has a cluster."""
        self._own_volume = own_volume
        self._runner = runner
        self._machine = machine
        self._liveness = liveness
        self._clock = clock
        self._random = random

    def register_handlers(self, handlers: Handlers) -> None:
        """Register a handler for each call that changes the metadata."""
        handlers.add(methods.CREATE_TOPICS, self.create_topics)
        handlers.add(methods.DELETE_TOPICS, self.delete_topics)
        handlers.add(methods.CREATE_PARTITIONS, self.create_partitions)
        handlers.add(methods.INCREMENTAL_ALTER_CONFIGS, self.incremental_alter_configs)
        handlers.add(methods.CREATE_ACLS, self.create_acls)
        handlers.add(methods.DELETE_ACLS, self.delete_acls)
        handlers.add(methods.ALTER_CLIENT_QUOTAS, self.alter_client_quotas)
        handlers.add(methods.REGISTER_INSTANCE, self.register_instance)
        PartitionMoves(self._runner, self._machine).register_handlers(handlers)

    async def create_topics(
        self, request: wire.CreateTopicsRequest, _call: Call
    ) -> wire.CreateTopicsResponse:
        """Create topics; all of them are decided at once, so they share a commit."""
        check_create_topics(request)
        named = Counter(topic.name for topic in request.topics)
        results = await _at_once(
            self._create_topic(
                topic, repeated=named[topic.name] > 1, validate_only=request.validate_only
            )
            for topic in request.topics
        )
        return wire.CreateTopicsResponse(topics=results)

    async def delete_topics(
        self, request: wire.DeleteTopicsRequest, _call: Call
    ) -> wire.DeleteTopicsResponse:
        """Delete topics; all of them are decided at once, so they share a commit."""
        check_delete_topics(request)
        by_name = map(self._delete_by_name, request.topics)
        by_id = map(self._delete_by_id, request.topic_ids)
        return wire.DeleteTopicsResponse(topics=await _at_once(chain(by_name, by_id)))

    async def create_partitions(
        self, request: wire.CreatePartitionsRequest, _call: Call
    ) -> wire.CreatePartitionsResponse:
        """Give topics more partitions; all of them are decided at once."""
        check_create_partitions(request)
        results = await _at_once(
            self._create_partitions(topic, request.validate_only) for topic in request.topics
        )
        return wire.CreatePartitionsResponse(topics=results)

    async def incremental_alter_configs(
        self, request: wire.IncrementalAlterConfigsRequest, _call: Call
    ) -> wire.IncrementalAlterConfigsResponse:
        """Change options of topics; of one topic all that was asked, or nothing."""
        check_alter_configs(request)
        results = await _at_once(
            self._alter_configs(change, request.validate_only) for change in request.topics
        )
        return wire.IncrementalAlterConfigsResponse(topics=results)

    async def create_acls(
        self, request: acls_wire.CreateAclsRequest, _call: Call
    ) -> acls_wire.CreateAclsResponse:
        """Add access rules, all or none."""
        check_create_acls(request)
        acls, dry = acls_from_wire(request.acls), request.validate_only
        # A full disk must not keep anybody from denying.
        created = await self._runner.run(
            lambda: self._machine.create_acls(acls, validate_only=dry), privileged=True
        )
        return acls_wire.CreateAclsResponse(created=acls_to_wire(created))

    async def delete_acls(
        self, request: acls_wire.DeleteAclsRequest, _call: Call
    ) -> acls_wire.DeleteAclsResponse:
        """Remove access rules."""
        check_delete_acls(request)
        filters = [filter_from_wire(each) for each in request.filters]
        deleted = await self._runner.run(
            lambda: self._machine.delete_acls(filters, validate_only=request.validate_only),
            privileged=True,
        )
        return acls_wire.DeleteAclsResponse(deleted=acls_to_wire(deleted))

    async def alter_client_quotas(
        self, request: quotas_wire.AlterClientQuotasRequest, _call: Call
    ) -> quotas_wire.AlterClientQuotasResponse:
        """Change limits of users, all or none."""
        check_alter_client_quotas(request)
        changes = [
            QuotaChange(user=change.user, set_=dict(change.set), remove=tuple(change.remove))
            for change in request.changes
        ]
        after = await self._runner.run(
            lambda: self._machine.alter_client_quotas(changes, validate_only=request.validate_only),
            privileged=True,
        )
        return quotas_wire.AlterClientQuotasResponse(client_quotas=quotas_to_wire(after))

    async def register_instance(
        self, request: wire.RegisterInstanceRequest, _call: Call
    ) -> wire.RegisterInstanceResponse:
        """Note where an instance is, and that it lives."""
        registration = read_registration(request)
        self._check_own_volume(registration)
        if registration.key == CONTROLLER:
            raise InvalidRequestError(
                f"{registration.key} is the controller itself: nobody can register in its place",
                field="instance_id",
            )
        cluster = await self.register(registration, read_shortage(request))
        self._own_volume.came(registration.key)
        response = wire.RegisterInstanceResponse(
            cluster_id=cluster.cluster_id, layout=layout_to_wire(cluster.layout)
        )
        if self._own_volume.confirmed.is_set():
            response.controller.CopyFrom(mark_to_wire(self._own_volume.mark()))
        return response

    def _check_own_volume(self, registration: Registration) -> None:
        """Look at what an instance knows of this volume; the machine refuses other clusters'."""
        if registration.cluster_id == self._machine.image().cluster_id:
            self._own_volume.check(registration)

    async def register(
        self, registration: Registration, shortage: DiskShortage | None
    ) -> ClusterRecord:
        """Note where an instance is, that it lives, and whether its disk is short of space."""
        now_ms = self._clock.now_ms()
        cluster = await self._runner.run(
            lambda: self._machine.register_instance(
                registration, is_live=lambda key: self._liveness.is_live(key, now_ms=now_ms)
            )
        )
        self._liveness.note(registration.key, now_ms=now_ms, shortage=shortage)
        return cluster

    async def _create_topic(
        self, topic: wire.NewTopic, *, repeated: bool, validate_only: bool
    ) -> wire.CreateTopicResult:
        new = NewTopic(
            name=topic.name,
            topic_id=new_id(self._random),
            partition_count=topic.partitions,
            configs=tuple(topic.configs.items()),
        )
        try:
            if repeated:
                raise InvalidRequestError(f"topic {topic.name!r} is in this request more than once")
            created = await self._runner.run(
                lambda: self._machine.create_topic(new, validate_only=validate_only),
                may_use=Reserve.NONE,
            )
        except SemelError as error:
            return wire.CreateTopicResult(name=topic.name, error=to_value(error))
        return wire.CreateTopicResult(
            name=created.name,
            topic_id="" if validate_only else created.topic_id,
            partitions=len(created.partitions),
        )

    async def _create_partitions(
        self, more: wire.MorePartitions, validate_only: bool
    ) -> wire.CreatePartitionsResult:
        try:
            topic = await self._runner.run(
                lambda: self._machine.create_partitions(
                    more.name, more.partitions, validate_only=validate_only
                ),
                may_use=Reserve.NONE,
            )
        except SemelError as error:
            return wire.CreatePartitionsResult(name=more.name, error=to_value(error))
        return wire.CreatePartitionsResult(name=topic.name, partitions=len(topic.partitions))

    async def _alter_configs(
        self, change: wire.TopicConfigChange, validate_only: bool
    ) -> wire.AlterConfigsResult:
        try:
            # A full disk must not keep anybody from keeping less.
            altered = await self._runner.run(
                lambda: self._machine.incremental_alter_configs(
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

    async def _delete_by_name(self, name: str) -> wire.DeleteTopicResult:
        try:
            deleted = await self._delete(lambda: self._machine.delete_topic_by_name(name))
        except SemelError as error:
            return wire.DeleteTopicResult(name=name, error=to_value(error))
        return wire.DeleteTopicResult(name=deleted.name, topic_id=deleted.topic_id)

    async def _delete_by_id(self, topic_id: str) -> wire.DeleteTopicResult:
        try:
            deleted = await self._delete(lambda: self._machine.delete_topic_by_id(topic_id))
        except SemelError as error:
            return wire.DeleteTopicResult(topic_id=topic_id, error=to_value(error))
        return wire.DeleteTopicResult(name=deleted.name, topic_id=deleted.topic_id)

    async def _delete(self, decide: Decide) -> Topic:
        # A full disk must not keep anybody from deleting.
        return await self._runner.run(decide, privileged=True)


async def _at_once(changes: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """Make changes that share a commit; returns what each came to, in their order."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(change) for change in changes]
    return [task.result() for task in tasks]
