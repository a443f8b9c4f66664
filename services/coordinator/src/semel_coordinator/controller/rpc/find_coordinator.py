"""FindCoordinator: the instance that serves a group or a transactional id."""

from collections.abc import Callable
from dataclasses import dataclass

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import CoordinatorNotAvailableError, InvalidGroupIdError, SemelError
from semel_common.wire.messages.request_bounds import NAMES_MAX
from semel_common.wire.status import to_value
from semel_coordinator.controller.machine import InstanceKey
from semel_coordinator.controller.rpc.metadata_messages import instance_to_wire
from semel_coordinator.controller.rpc.metadata_reader import MetadataReader
from semel_runtime.cluster.metadata_image import Instance, ServiceRole
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_known, require_name

_TYPES = (wire.COORDINATOR_TYPE_GROUP, wire.COORDINATOR_TYPE_TRANSACTION)


@dataclass(frozen=True, slots=True)
class CoordinatorFinder:
    """Answers FindCoordinator."""

    reader: MetadataReader

    async def find_coordinator(
        self, request: wire.FindCoordinatorRequest, call: Call
    ) -> wire.FindCoordinatorResponse:
        """Answer the coordinator of each key."""
        check_find_coordinator(request)
        is_group = request.type == wire.COORDINATOR_TYPE_GROUP
        locate = self._locate_group if is_group else self._locate_transactional_id
        return await self.reader.read(
            lambda: wire.FindCoordinatorResponse(
                coordinators=[_location(key, locate, call.origin.listener) for key in request.keys]
            )
        )

    def _locate_group(self, group_id: str) -> Instance:
        if not group_id:
            raise InvalidGroupIdError("a group id is empty")
        require_name("keys", group_id)
        instance_id = self.reader.cluster.group_coordinator_for(group_id)
        return self._instance(ServiceRole.GROUP_COORDINATOR, instance_id)

    def _locate_transactional_id(self, transactional_id: str) -> Instance:
        require_name("keys", transactional_id)
        instance_id = self.reader.cluster.coordinator_for(transactional_id)
        return self._instance(ServiceRole.COORDINATOR, instance_id)

    def _instance(self, role: ServiceRole, instance_id: int) -> Instance:
        instance = self.reader.cluster.instance(role, instance_id)
        if instance is None:
            raise CoordinatorNotAvailableError(
                f"{InstanceKey(role, instance_id)} has not registered yet"
            )
        return instance


def check_find_coordinator(request: wire.FindCoordinatorRequest) -> None:
    """Check the form of a request, except its keys: each key has an answer of its own."""
    require_known("type", request.type, _TYPES)
    require_count("keys", request.keys, minimum=1, maximum=NAMES_MAX)


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
